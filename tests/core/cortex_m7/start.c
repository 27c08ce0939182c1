/* Start of a program on a Cortex-M7 without an operating system, files by semihosting: the QEMU machine mps2-an500. */
#include <stdint.h>
#include <stdlib.h>

extern uint32_t stack_bottom[], stack_top[], bss_start[], bss_end[];
extern void initialise_monitor_handles(void);
extern int main(void);
void reset(void);
void fault(void);
void stack_paint(void);
unsigned long stack_used(void);

static const uint32_t PAINT = 0xA5A5A5A5u;

/* Stack pointer when the stack below it was painted. */
static uint32_t *painted_from;

void __attribute__((noinline)) stack_paint(void)
{
    __asm__ volatile("mov %0, sp" : "=r"(painted_from));
    for (volatile uint32_t *word = stack_bottom; word < painted_from; word++) *word = PAINT;
}

unsigned long stack_used(void)
{
    const uint32_t *word = stack_bottom;
    while (word < painted_from && *word == PAINT) word++;
    return (unsigned long)(painted_from - word) * sizeof *word;
}

void reset(void)
{
    *(volatile uint32_t *)0xE000ED88u |= 0xFu << 20; /* CPACR: the floating-point unit */
    __asm__ volatile("dsb\nisb");
    for (uint32_t *word = bss_start; word < bss_end; word++) *word = 0;
    initialise_monitor_handles();
    exit(main());
}

void fault(void) { exit(99); }

__attribute__((section(".vectors"), used)) static void *const vectors[16] = {
    stack_top, (void *)reset, (void *)fault, (void *)fault, (void *)fault, (void *)fault, (void *)fault,
};
