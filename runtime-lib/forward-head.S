/* What gen-forward.sh puts in front of the forwarders: `forwarder NAME, INDEX` defines one and the stub that its slot
 * begins with. `resolve` finds the driver's function; all argument registers keep their values. */
    .section .note.GNU-stack,"",%progbits
    .text
    .hidden forward_resolve
    .hidden forward_slots

#if defined(__x86_64__)
/* The index of the function is on the stack; %r11 is free by the ABI. */
resolve:
    .cfi_startproc
    .cfi_adjust_cfa_offset 8
    push %rbp
    .cfi_adjust_cfa_offset 8
    mov %rsp, %rbp
    push %rax
    push %rdi
    push %rsi
    push %rdx
    push %rcx
    push %r8
    push %r9
    and $-16, %rsp
    sub $128, %rsp
    movups %xmm0, (%rsp)
    movups %xmm1, 16(%rsp)
    movups %xmm2, 32(%rsp)
    movups %xmm3, 48(%rsp)
    movups %xmm4, 64(%rsp)
    movups %xmm5, 80(%rsp)
    movups %xmm6, 96(%rsp)
    movups %xmm7, 112(%rsp)
    mov 8(%rbp), %rdi
    call forward_resolve
    mov %rax, %r11
    movups (%rsp), %xmm0
    movups 16(%rsp), %xmm1
    movups 32(%rsp), %xmm2
    movups 48(%rsp), %xmm3
    movups 64(%rsp), %xmm4
    movups 80(%rsp), %xmm5
    movups 96(%rsp), %xmm6
    movups 112(%rsp), %xmm7
    lea -56(%rbp), %rsp
    pop %r9
    pop %r8
    pop %rcx
    pop %rdx
    pop %rsi
    pop %rdi
    pop %rax
    pop %rbp
    add $8, %rsp
    jmp *%r11
    .cfi_endproc

    .macro forwarder name, index
    .globl \name
    .type \name, @function
\name:
    endbr64
    jmp *forward_slots+8*\index(%rip)
    .size \name, .-\name
lazy\index:
    endbr64
    push $\index
    jmp resolve
    .endm

#elif defined(__aarch64__)
/* The index of the function is in %w17; %x16 and %x17 are free by the ABI. %x8 is where a struct is returned. */
resolve:
    .cfi_startproc
    stp x29, x30, [sp, #-224]!
    .cfi_def_cfa_offset 224
    .cfi_offset 29, -224
    .cfi_offset 30, -216
    mov x29, sp
    stp x0, x1, [sp, #16]
    stp x2, x3, [sp, #32]
    stp x4, x5, [sp, #48]
    stp x6, x7, [sp, #64]
    str x8, [sp, #80]
    stp q0, q1, [sp, #96]
    stp q2, q3, [sp, #128]
    stp q4, q5, [sp, #160]
    stp q6, q7, [sp, #192]
    mov w0, w17
    bl forward_resolve
    mov x16, x0
    ldp q0, q1, [sp, #96]
    ldp q2, q3, [sp, #128]
    ldp q4, q5, [sp, #160]
    ldp q6, q7, [sp, #192]
    ldp x0, x1, [sp, #16]
    ldp x2, x3, [sp, #32]
    ldp x4, x5, [sp, #48]
    ldp x6, x7, [sp, #64]
    ldr x8, [sp, #80]
    ldp x29, x30, [sp], #224
    .cfi_def_cfa_offset 0
    br x16
    .cfi_endproc

    .macro forwarder name, index
    .globl \name
    .type \name, %function
\name:
    adrp x16, forward_slots+8*\index
    ldr x16, [x16, #:lo12:forward_slots+8*\index]
    br x16
    .size \name, .-\name
lazy\index:
    mov w17, #\index
    b resolve
    .endm

#else
#error "Weir runs on x86-64 and on arm64"
#endif

