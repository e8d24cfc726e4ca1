/* One function per kind of reference: constants, strings, writable and zeroed data, pointers in data, calls inside
 * the object and out of it, loads and stores of every width. */
typedef struct { _Alignas(16) unsigned char bytes[16]; } Wide;

static float weights[4] = { 0.5f, 1.5f, 2.5f, 3.5f };
static int counter = 40;
static long zeroed[8];
int shared_counter = 7;
static unsigned char byte_cell = 3;
static unsigned short half_cell = 500;
static Wide wide_cell = { { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16 } };
static const char *const names[3] = { "zero", "one", "two" };

extern double outside(double);

__attribute__((noinline)) static int twice(int x) { return 2 * x; }
__attribute__((noinline)) int thrice(int x) { return 3 * x + 0 * counter; }
static int (*const operations[2])(int) = { twice, thrice };

float scaled(int x) { return (float)x + 12345678.0f; }

float weigh(const float *in, int n)
{
    float sum = 0;
    for (int i = 0; i < n; i++)
        sum += in[i] * weights[i & 3];
    return sum;
}

int count(void) { return counter++; }

int count_shared(int by) { return shared_counter += by; }

long remember(int slot, long value)
{
    long old = zeroed[slot & 7];
    zeroed[slot & 7] = value;
    return old;
}

int call(int which, int x) { return operations[which & 1](x) + twice(x); }

int first_letter(int i) { return names[i][0]; }

unsigned long widths(void)
{
    byte_cell++;
    half_cell++;
    return byte_cell + half_cell;
}

void wide(Wide *out) { *out = wide_cell; }

double call_outside(double x) { return outside(x) + 1.0; }

int choose(int i)
{
    switch (i) {
    case 0: return 17;
    case 1: return counter;
    case 2: return twice(i);
    case 3: return -4;
    case 4: return thrice(i);
    case 5: return 99;
    default: return -1;
    }
}
