// What CUDA C++ expects of a driver and ptxas leaves undefined: printf, malloc, free, assert. `make device-library` compiles this file to
// device.cubin, which the library carries. The loader resolves the name N of a module to the function tegrarm_N.
//
// A function here runs with the constant banks of the kernel that called it. Therefore it may use bank 0 only, which the library fills:
// environment registers 30 and 31 have the address of the state. `packaging/device_library.py` refuses machine code that reads other
// banks.

typedef unsigned char u8;
typedef unsigned int u32;
typedef unsigned long long u64;

// Why a thread stopped its kernel. The first such thread writes it. The texts of an assertion are cut to these lengths.
struct Stop {
    u32 reason;  // STOP_*; 0 as long as no thread has stopped
    u32 told;    // 1 as soon as the other fields can be read
    u32 block[3], thread[3];
    u64 address;
    u32 line, pad;
    char message[512], file[512], function[512];
};
enum { STOP_ASSERT = 1, STOP_FREE_FOREIGN = 2, STOP_FREE_TWICE = 3 };

// `head` and `tail` count words and never decrease: `head` the words that kernels have reserved, `tail` the words that the CPU has read.
struct Ring {
    u64 words;
    u32 mask, lost;
    u64 head, tail;
};

// The heap is divided into units of 16 bytes. Unit 0 is not used, so that the number 0 means "no block".
struct Heap {
    u64 units_at;
    u32 units, lock, bins;
    u32 bin[32];
    u32 pad;
};

// library/state.rs has the same offsets.
struct State {
    Stop stop;
    Ring ring;
    Heap heap;
};
static_assert(sizeof(Stop) == 1584 && sizeof(Ring) == 32 && sizeof(Heap) == 152 && sizeof(State) == 1768, "state.rs says so too");

#define LIBRARY extern "C" __device__ __noinline__
#define INLINE static __device__ __forceinline__

// The caller's pointer may lead to any kind of memory. Without this, the compiler would take it for global memory, because of the calls
// that it sees.
template <typename T> INLINE T *any(T *pointer) {
    asm volatile("" : "+l"(pointer));
    return pointer;
}

INLINE volatile State *state() {
    u32 low, high;
    asm("mov.u32 %0, %%envreg30;" : "=r"(low));
    asm("mov.u32 %0, %%envreg31;" : "=r"(high));
    return (volatile State *)((u64)high << 32 | low);
}

// --- stopping the kernel ------------------------------------------------------------------------------------------

INLINE void copy_text(volatile char *to, u32 room, const char *from) {
    u32 n = 0;
    from = any(from);
    if (from) for (; n + 1 < room && from[n]; n++) to[n] = from[n];
    to[n] = 0;
}

// Reserves the record. A thread that comes later waits until the record is written, because its trap would stop the grid earlier.
INLINE bool claim(volatile Stop *stop, u32 reason) {
    if (atomicCAS((u32 *)&stop->reason, 0u, reason) == 0) {
        stop->block[0] = blockIdx.x, stop->block[1] = blockIdx.y, stop->block[2] = blockIdx.z;
        stop->thread[0] = threadIdx.x, stop->thread[1] = threadIdx.y, stop->thread[2] = threadIdx.z;
        return true;
    }
    while (!stop->told) __nanosleep(100);
    return false;
}

INLINE void give_up(volatile Stop *stop) {
    __threadfence_system();
    stop->told = 1;
    __threadfence_system();
    asm volatile("trap;");
}

LIBRARY void tegrarm___assertfail(const char *message, const char *file, u32 line, const char *function, u64) {
    volatile Stop *stop = &state()->stop;
    if (claim(stop, STOP_ASSERT)) {
        stop->line = line;
        copy_text(stop->message, sizeof stop->message, message);
        copy_text(stop->file, sizeof stop->file, file);
        copy_text(stop->function, sizeof stop->function, function);
    }
    give_up(stop);
}

// --- printf -------------------------------------------------------------------------------------------------------

// A record has four words of header, then the bytes of the format, of the arguments and of the strings, each filled up to whole words. The
// header has the number of words (with the bit COMPLETE as soon as the record can be read) and the three lengths. The strings are those of
// all %s, in order, each with its NUL.
enum : u32 { COMPLETE = 1u << 31, RECORD_HEADER = 4 };

// One conversion of a format. library/format.rs reads formats in the same way.
struct Conversion {
    u32 stars;      // how many `*` it has
    bool wide;      // the argument has 8 bytes and not 4
    char letter;    // 0 if the format ends before the letter
    bool limited;   // it has a precision
    int precision;  // a number, or the argument of a `*`
};

INLINE bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

INLINE int take_int(const u8 *arguments, u32 &at) {
    at = (at + 3) & ~3u;
    int value = *(const int *)(arguments + at);
    at += 4;
    return value;
}

// Reads a conversion behind its '%', and the arguments of its stars.
INLINE const char *read_conversion(const char *f, const u8 *arguments, u32 &at, Conversion &c) {
    c.stars = 0, c.wide = false, c.limited = false, c.precision = 0;
    while (*f == '-' || *f == '+' || *f == ' ' || *f == '#' || *f == '0') f++;
    if (*f == '*') f++, c.stars++, take_int(arguments, at);
    while (is_digit(*f)) f++;
    if (*f == '.') {
        f++, c.limited = true;
        if (*f == '*') {
            f++, c.stars++, c.precision = take_int(arguments, at);
            if (c.precision < 0) c.limited = false;
        } else {
            for (; is_digit(*f); f++) c.precision = c.precision < 100000 ? c.precision * 10 + (*f - '0') : c.precision;
        }
    }
    for (;; f++) {
        if (*f == 'l' || *f == 'j' || *f == 'z' || *f == 't' || *f == 'L' || *f == 'q') c.wide = true;
        else if (*f != 'h') break;
    }
    c.letter = *f ? *f++ : 0;
    return f;
}

INLINE bool is_float(char c) {
    char lower = c | 32;
    return lower >= 'e' && lower <= 'g' || lower == 'a';
}

INLINE bool is_integer(char c) {
    return c == 'd' || c == 'i' || c == 'u' || c == 'o' || c == 'x' || c == 'X' || c == 'c';
}

INLINE bool is_pointer(char c) {
    return c == 's' || c == 'p' || c == 'n';
}

INLINE u32 text_length(const char *text, const Conversion &c) {
    u32 n = 0;
    if (text) while ((!c.limited || n < (u32)c.precision) && text[n]) n++;
    return n;
}

// Writes bytes into the ring, a word at a time.
struct Writer {
    volatile u32 *words;
    u64 at;
    u32 mask, word, filled;
};

INLINE void put_byte(Writer &w, u8 byte) {
    w.word |= (u32)byte << (8 * w.filled);
    if (++w.filled == 4) {
        w.words[(u32)w.at & w.mask] = w.word;
        w.at++, w.word = 0, w.filled = 0;
    }
}

INLINE void fill_word(Writer &w) {
    while (w.filled) put_byte(w, 0);
}

INLINE void put_word(Writer &w, u32 word) {
    w.words[(u32)w.at++ & w.mask] = word;
}

// Goes through the conversions of a format. It measures the parts of the record, or it writes the strings if there is a writer.
struct Measure {
    u32 format, arguments, strings;
    int count;
};

static __device__ __noinline__ void walk(const char *format, const u8 *arguments, Measure *measure, Writer *writer) {
    u32 at = 0, strings = 0;
    int count = 0;
    const char *f = any(format);
    arguments = any(arguments);
    while (*f) {
        if (*f++ != '%') continue;
        if (*f == '%') {
            f++;
            continue;
        }
        Conversion c;
        f = read_conversion(f, arguments, at, c);
        count += c.stars;
        bool pointer = is_pointer(c.letter), real = is_float(c.letter);
        if (!pointer && !real && !is_integer(c.letter)) continue;
        count++;
        u32 size = pointer || real || c.wide ? 8 : 4;
        at = (at + size - 1) & ~(size - 1);
        if (c.letter == 's') {
            const char *text = any(*(const char *const *)(arguments + at));
            u32 length = text_length(text, c);
            strings += length + 1;
            if (writer) {
                for (u32 i = 0; i < length; i++) put_byte(*writer, text[i]);
                put_byte(*writer, 0);
            }
        }
        at += size;
    }
    if (measure) measure->format = (u32)(f - format), measure->arguments = at, measure->strings = strings, measure->count = count;
}

// Reserves `words` of the ring. Returns false if the ring is full, because the CPU has not read enough of it yet.
INLINE bool take_words(volatile Ring *ring, u32 words, u64 &at) {
    u64 head = ring->head;
    for (;;) {
        if (head + words - ring->tail > (u64)ring->mask + 1) {
            atomicAdd((u32 *)&ring->lost, 1u);
            return false;
        }
        u64 seen = atomicCAS((u64 *)&ring->head, head, head + words);
        if (seen == head) break;
        head = seen;
    }
    at = head;
    return true;
}

// Returns the number of arguments; -1 if there is no format, and -2 if the ring is full, which is CUDA's number for an internal error.
LIBRARY int tegrarm_vprintf(const char *format, const u8 *arguments) {
    if (!format) return -1;
    format = any(format), arguments = any(arguments);
    Measure m;
    walk(format, arguments, &m, 0);
    u32 words = RECORD_HEADER + (m.format + 3) / 4 + (m.arguments + 3) / 4 + (m.strings + 3) / 4;
    volatile Ring *ring = &state()->ring;
    Writer w;
    if (!take_words(ring, words, w.at)) return -2;
    w.words = (volatile u32 *)ring->words, w.mask = ring->mask, w.word = 0, w.filled = 0;
    volatile u32 *header = &w.words[(u32)w.at & w.mask];
    put_word(w, words);
    put_word(w, m.format);
    put_word(w, m.arguments);
    put_word(w, m.strings);
    for (u32 i = 0; i < m.format; i++) put_byte(w, format[i]);
    fill_word(w);
    for (u32 i = 0; i < m.arguments; i++) put_byte(w, arguments[i]);
    fill_word(w);
    walk(format, arguments, 0, &w);
    fill_word(w);
    __threadfence_system();
    *header = words | COMPLETE;
    return m.count;
}

// --- malloc and free ----------------------------------------------------------------------------------------------

// A block has one unit that describes it, and then the caller's bytes. The first bytes of a free block link it to the other blocks of its
// bin: bin n has blocks of 2^n to 2^(n+1) - 1 units. Blocks lie side by side, and no two free blocks are neighbours.
struct Block {
    u32 size, before, mark, pad;  // `size` and `before` are units of this block and of the one before it, which is 0 for the first block
    u32 next, previous;
};
enum : u32 { FREE = 0x46524545, USED = 0x55534544, UNIT = 16, SMALLEST = 2, TRIES = 16 };

INLINE volatile Block *block_at(volatile Heap *heap, u32 unit) {
    return (volatile Block *)(heap->units_at + (u64)UNIT * unit);
}

INLINE u32 bin_of(u32 units) {
    return 31 - __clz(units);
}

INLINE void link(volatile Heap *heap, u32 unit) {
    volatile Block *block = block_at(heap, unit);
    u32 bin = bin_of(block->size), first = heap->bin[bin];
    block->mark = FREE, block->next = first, block->previous = 0;
    if (first) block_at(heap, first)->previous = unit;
    heap->bin[bin] = unit;
    heap->bins = heap->bins | 1u << bin;
}

INLINE void unlink(volatile Heap *heap, u32 unit) {
    volatile Block *block = block_at(heap, unit);
    u32 bin = bin_of(block->size), next = block->next, previous = block->previous;
    if (next) block_at(heap, next)->previous = previous;
    if (previous) {
        block_at(heap, previous)->next = next;
    } else {
        heap->bin[bin] = next;
        if (!next) heap->bins = heap->bins & ~(1u << bin);
    }
}

INLINE void resize(volatile Heap *heap, u32 unit, u32 size) {
    block_at(heap, unit)->size = size;
    if (unit + size < heap->units) block_at(heap, unit + size)->before = size;
}

INLINE u32 search(volatile Heap *heap, u32 bin, u32 units, u32 tries) {
    for (u32 unit = heap->bin[bin]; unit && tries; tries--) {
        if (block_at(heap, unit)->size >= units) return unit;
        unit = block_at(heap, unit)->next;
    }
    return 0;
}

// First tries some blocks of its own bin. Every block of a larger bin is large enough, so the first one will do. If there is none, tries
// all blocks of its own bin.
INLINE u32 find(volatile Heap *heap, u32 units) {
    u32 bin = bin_of(units), found = search(heap, bin, units, TRIES);
    if (found) return found;
    u32 larger = heap->bins & ~((2u << bin) - 1);
    if (larger) return heap->bin[__ffs(larger) - 1];
    return search(heap, bin, units, ~0u);
}

// Shortens a block, which is in no bin, to `units`. The rest becomes a free block.
INLINE void cut(volatile Heap *heap, u32 unit, u32 units) {
    u32 size = block_at(heap, unit)->size;
    if (size - units < SMALLEST) return;
    resize(heap, unit, units);
    resize(heap, unit + units, size - units);
    link(heap, unit + units);
}

// `alignment` is a number of units and a power of two.
INLINE u64 take(volatile Heap *heap, u32 units, u32 alignment) {
    u32 unit = find(heap, alignment > 1 ? units + alignment + SMALLEST : units);
    if (!unit) return 0;
    unlink(heap, unit);
    // The caller's bytes begin one unit behind the block. The heap itself begins at a multiple of 4 KiB.
    u64 first = heap->units_at / UNIT + unit + 1, skip = (0 - first) & (alignment - 1);
    if (skip && skip < SMALLEST) skip += alignment;
    if (skip) {
        u32 size = block_at(heap, unit)->size;
        resize(heap, unit, (u32)skip);
        resize(heap, unit + (u32)skip, size - (u32)skip);
        link(heap, unit);
        unit += (u32)skip;
    }
    cut(heap, unit, units);
    block_at(heap, unit)->mark = USED;
    return (u64)(block_at(heap, unit)) + UNIT;
}

// Frees an address. Returns 0, or the reason why the address cannot be freed.
INLINE u32 give(volatile Heap *heap, u64 address) {
    u64 offset = address - heap->units_at;
    if (address < heap->units_at || offset % UNIT || offset / UNIT < 2 || offset / UNIT >= heap->units) return STOP_FREE_FOREIGN;
    u32 unit = (u32)(offset / UNIT) - 1, size = block_at(heap, unit)->size, before = block_at(heap, unit)->before;
    u32 mark = block_at(heap, unit)->mark;
    if (mark != USED) return mark == FREE ? STOP_FREE_TWICE : STOP_FREE_FOREIGN;
    u32 behind = unit + size;
    if (behind < heap->units && block_at(heap, behind)->mark == FREE) {
        unlink(heap, behind);
        size += block_at(heap, behind)->size;
    }
    // If this block becomes part of the one before it, its mark still says "free". So a second free of the address is recognised.
    block_at(heap, unit)->mark = FREE;
    if (before && block_at(heap, unit - before)->mark == FREE) {
        unit -= before, size += before;
        unlink(heap, unit);
    }
    resize(heap, unit, size);
    link(heap, unit);
    return 0;
}

// Lanes that run together take the lock once. They use the heap one after another.
INLINE u32 lane() {
    u32 lane;
    asm("mov.u32 %0, %%laneid;" : "=r"(lane));
    return lane;
}

INLINE void lock(volatile Heap *heap, u32 mask) {
    if (lane() == __ffs(mask) - 1)
        while (atomicCAS((u32 *)&heap->lock, 0u, 1u)) __nanosleep(50);
    __syncwarp(mask);
    __threadfence();
}

INLINE void unlock(volatile Heap *heap, u32 mask) {
    __threadfence();
    __syncwarp(mask);
    if (lane() == __ffs(mask) - 1) atomicExch((u32 *)&heap->lock, 0u);
}

static __device__ __noinline__ u64 allocate(u64 size, u64 alignment) {
    volatile Heap *heap = &state()->heap;
    if (alignment < UNIT) alignment = UNIT;
    if (!size || size + alignment < size || (size + alignment) / UNIT >= heap->units || alignment & (alignment - 1)) return 0;
    u32 units = (u32)((size + UNIT - 1) / UNIT) + 1, mask = __activemask();
    u64 result = 0;
    lock(heap, mask);
    for (u32 left = mask; left; left &= left - 1) {
        if (lane() == __ffs(left) - 1) result = take(heap, units, (u32)(alignment / UNIT));
        __syncwarp(mask);
    }
    unlock(heap, mask);
    return result;
}

LIBRARY u64 tegrarm_malloc(u64 size) {
    return allocate(size, UNIT);
}

LIBRARY u64 tegrarm___cuda_syscall_aligned_malloc(u64 size, u64 alignment) {
    return allocate(size, alignment);
}

LIBRARY void tegrarm_free(u64 address) {
    if (!address) return;
    volatile State *s = state();
    u32 mask = __activemask(), wrong = 0;
    lock(&s->heap, mask);
    for (u32 left = mask; left; left &= left - 1) {
        if (lane() == __ffs(left) - 1) wrong = give(&s->heap, address);
        __syncwarp(mask);
    }
    unlock(&s->heap, mask);
    if (!wrong) return;
    if (claim(&s->stop, wrong)) s->stop.address = address;
    give_up(&s->stop);
}

// --- the kernel that keeps the functions ---------------------------------------------------------------------------

// No program launches this kernel. It makes the linker keep the functions, and compute what the largest of them needs: registers and stack.
extern "C" __global__ void tegrarm_device_library(u64 *to, const char *text) {
    to[0] = tegrarm_vprintf(text, (const u8 *)text);
    to[1] = tegrarm_malloc(to[0]);
    to[2] = tegrarm___cuda_syscall_aligned_malloc(to[0], to[1]);
    tegrarm_free(to[2]);
    tegrarm___assertfail(text, text, (u32)to[1], text, 1);
}
