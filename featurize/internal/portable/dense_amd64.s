#include "textflag.h"

// SSE of the baseline, so that every amd64 has it. Lanes, order and rounding
// are those of dense.go.

// func dotAsm(x, y []float32) float32
// X0 = a b c d, X1 = e f g h.
TEXT ·dotAsm(SB), NOSPLIT, $0-52
	MOVQ  x_base+0(FP), SI
	MOVQ  y_base+24(FP), DI
	MOVQ  x_len+8(FP), CX
	XORPS X0, X0
	XORPS X1, X1
	MOVQ  CX, BX
	ANDQ  $7, BX
	SHRQ  $3, CX
	JZ    tail

eight:
	MOVUPS (SI), X2
	MOVUPS 16(SI), X3
	MOVUPS (DI), X4
	MOVUPS 16(DI), X5
	MULPS  X4, X2
	MULPS  X5, X3
	ADDPS  X2, X0
	ADDPS  X3, X1
	ADDQ   $32, SI
	ADDQ   $32, DI
	DECQ   CX
	JNZ    eight

tail:
	TESTQ BX, BX
	JZ    reduce

one:
	MOVSS (SI), X2
	MULSS (DI), X2
	ADDSS X2, X0
	ADDQ  $4, SI
	ADDQ  $4, DI
	DECQ  BX
	JNZ   one

reduce:
	// ((a + b) + (c + d)) + ((e + f) + (g + h))
	MOVAPS  X0, X2
	SHUFPS  $0xB1, X2, X2 // b a d c
	ADDPS   X2, X0
	MOVHLPS X0, X2        // c + d
	ADDSS   X2, X0
	MOVAPS  X1, X3
	SHUFPS  $0xB1, X3, X3
	ADDPS   X3, X1
	MOVHLPS X1, X3
	ADDSS   X3, X1
	ADDSS   X1, X0
	MOVSS   X0, ret+48(FP)
	RET

// func addAsm(x, sum []float32)
TEXT ·addAsm(SB), NOSPLIT, $0-48
	MOVQ x_base+0(FP), SI
	MOVQ sum_base+24(FP), DI
	MOVQ x_len+8(FP), CX
	MOVQ CX, BX
	ANDQ $7, BX
	SHRQ $3, CX
	JZ   addtail

addeight:
	MOVUPS (SI), X0
	MOVUPS 16(SI), X1
	MOVUPS (DI), X2
	MOVUPS 16(DI), X3
	ADDPS  X0, X2
	ADDPS  X1, X3
	MOVUPS X2, (DI)
	MOVUPS X3, 16(DI)
	ADDQ   $32, SI
	ADDQ   $32, DI
	DECQ   CX
	JNZ    addeight

addtail:
	TESTQ BX, BX
	JZ    added

addone:
	MOVSS (DI), X0
	ADDSS (SI), X0
	MOVSS X0, (DI)
	ADDQ  $4, SI
	ADDQ  $4, DI
	DECQ  BX
	JNZ   addone

added:
	RET

// func subAsm(x, sum []float32)
TEXT ·subAsm(SB), NOSPLIT, $0-48
	MOVQ x_base+0(FP), SI
	MOVQ sum_base+24(FP), DI
	MOVQ x_len+8(FP), CX
	MOVQ CX, BX
	ANDQ $7, BX
	SHRQ $3, CX
	JZ   subtail

subeight:
	MOVUPS (SI), X0
	MOVUPS 16(SI), X1
	MOVUPS (DI), X2
	MOVUPS 16(DI), X3
	SUBPS  X0, X2
	SUBPS  X1, X3
	MOVUPS X2, (DI)
	MOVUPS X3, 16(DI)
	ADDQ   $32, SI
	ADDQ   $32, DI
	DECQ   CX
	JNZ    subeight

subtail:
	TESTQ BX, BX
	JZ    subbed

subone:
	MOVSS (DI), X0
	SUBSS (SI), X0
	MOVSS X0, (DI)
	ADDQ  $4, SI
	ADDQ  $4, DI
	DECQ  BX
	JNZ   subone

subbed:
	RET
