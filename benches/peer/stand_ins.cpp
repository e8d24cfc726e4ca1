// What gpuocelot's emulator refers to and does not need in order to run a kernel, and one check that is left out.

#include <cstdio>
#include <cstdlib>
#include <string>

// Its settings, which it has built in. Without them it runs with values that nobody set.
__asm__(".section .rodata\n"
        "peer_configuration: .incbin \"" CONFIGURATION "\"\n"
        "peer_configuration_end: .byte 0\n"
        ".text\n");
extern const char configuration[] __asm__("peer_configuration");
extern const char configuration_end[] __asm__("peer_configuration_end");

namespace res {
namespace embed {
const char *get(const std::string &name, size_t *size, std::string *)
{
	bool known = name == "configure_ocelot";
	if (size)
		*size = known ? configuration_end - configuration : 0;
	return known ? configuration : nullptr;
}
} // namespace embed
} // namespace res

// Its parser refuses instructions whose registers have another sign than the instruction, as tinygrad writes them. NVIDIA's assembler
// takes them, and so does the gpuocelot of tinygrad's CI, which is newer than some public copies. --wrap puts this in the place.
std::string valid(const void *) __asm__("__wrap__ZNK2ir14PTXInstruction5validB5cxx11Ev");
std::string valid(const void *) { return {}; }

#define ABSENT(name, symbol) \
	extern "C" void name() __asm__(symbol); \
	void name() \
	{ \
		std::fputs("gpuocelot: " symbol " was called, which benches/peer does not build\n", stderr); \
		std::abort(); \
	}
ABSENT(create_pass, "_ZN10transforms11PassFactory10createPassERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE")
ABSENT(call_external, "_ZN2ir19ExternalFunctionSet16ExternalFunction4callEPvRKNS_9PTXKernel9PrototypeE")
ABSENT(find_external, "_ZNK2ir19ExternalFunctionSet4findERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE")
ABSENT(all_kernels, "_ZN9executive14EmulatorDevice13getAllKernelsEv")
ABSENT(opengl_context, "glXGetCurrentContext")
