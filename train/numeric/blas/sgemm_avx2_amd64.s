#include "textflag.h"

// The tile of C is held in Y0 to Y11, two registers a row; B's row of 16 in
// Y12 and Y13. The sums are those of the AVX-512 kernels, bit for bit: each
// element adds its products in the order of k, by fused multiply-add.

// Arguments of all kernels, see the type kernel. AX walks A, SI walks B.
#define ARGUMENTS \
	MOVQ k+0(FP), CX; \
	MOVQ a+8(FP), AX; \
	MOVQ rs+16(FP), R8; \
	MOVQ cs+24(FP), R12; \
	MOVQ b+32(FP), SI; \
	MOVQ bs+40(FP), R13; \
	MOVQ c+56(FP), DI; \
	MOVQ ldc+64(FP), DX

#define LOADB \
	VMOVUPS (SI), Y12; \
	VMOVUPS 32(SI), Y13; \
	ADDQ    R13, SI

#define ROW(at, c0, c1) \
	VBROADCASTSS at, Y14; \
	VFMADD231PS  Y12, Y14, c0; \
	VFMADD231PS  Y13, Y14, c1

#define CLEAR(c0, c1) \
	VXORPS c0, c0, c0; \
	VXORPS c1, c1, c1

// C = alpha·tile + C, and C = alpha·tile; alpha in Y14.
#define ADDROW(c0, c1) \
	VFMADD213PS (DI), Y14, c0; \
	VFMADD213PS 32(DI), Y14, c1; \
	VMOVUPS     c0, (DI); \
	VMOVUPS     c1, 32(DI); \
	ADDQ        DX, DI

#define SETROW(c0, c1) \
	VMULPS  c0, Y14, c0; \
	VMULPS  c1, Y14, c1; \
	VMOVUPS c0, (DI); \
	VMOVUPS c1, 32(DI); \
	ADDQ    DX, DI

// func tile6x16(k int, a *float32, rs, cs uintptr, b *float32, bs uintptr, alpha float32, c *float32, ldc uintptr, add bool)
TEXT ·tile6x16(SB), NOSPLIT, $0-73
	ARGUMENTS
	LEAQ (R8)(R8*2), R9  // 3 rows
	LEAQ (R8)(R8*4), R10 // 5 rows

	CLEAR(Y0, Y1)
	CLEAR(Y2, Y3)
	CLEAR(Y4, Y5)
	CLEAR(Y6, Y7)
	CLEAR(Y8, Y9)
	CLEAR(Y10, Y11)

loop:
	LOADB
	ROW((AX), Y0, Y1)
	ROW((AX)(R8*1), Y2, Y3)
	ROW((AX)(R8*2), Y4, Y5)
	ROW((AX)(R9*1), Y6, Y7)
	ROW((AX)(R8*4), Y8, Y9)
	ROW((AX)(R10*1), Y10, Y11)
	ADDQ R12, AX
	DECQ CX
	JNZ  loop

	VBROADCASTSS alpha+48(FP), Y14
	CMPB         add+72(FP), $0
	JEQ          set
	ADDROW(Y0, Y1)
	ADDROW(Y2, Y3)
	ADDROW(Y4, Y5)
	ADDROW(Y6, Y7)
	ADDROW(Y8, Y9)
	ADDROW(Y10, Y11)
	VZEROUPPER
	RET

set:
	SETROW(Y0, Y1)
	SETROW(Y2, Y3)
	SETROW(Y4, Y5)
	SETROW(Y6, Y7)
	SETROW(Y8, Y9)
	SETROW(Y10, Y11)
	VZEROUPPER
	RET

// func tile3x16(k int, a *float32, rs, cs uintptr, b *float32, bs uintptr, alpha float32, c *float32, ldc uintptr, add bool)
TEXT ·tile3x16(SB), NOSPLIT, $0-73
	ARGUMENTS

	CLEAR(Y0, Y1)
	CLEAR(Y2, Y3)
	CLEAR(Y4, Y5)

loop:
	LOADB
	ROW((AX), Y0, Y1)
	ROW((AX)(R8*1), Y2, Y3)
	ROW((AX)(R8*2), Y4, Y5)
	ADDQ R12, AX
	DECQ CX
	JNZ  loop

	VBROADCASTSS alpha+48(FP), Y14
	CMPB         add+72(FP), $0
	JEQ          set
	ADDROW(Y0, Y1)
	ADDROW(Y2, Y3)
	ADDROW(Y4, Y5)
	VZEROUPPER
	RET

set:
	SETROW(Y0, Y1)
	SETROW(Y2, Y3)
	SETROW(Y4, Y5)
	VZEROUPPER
	RET

// func tile1x16(k int, a *float32, rs, cs uintptr, b *float32, bs uintptr, alpha float32, c *float32, ldc uintptr, add bool)
TEXT ·tile1x16(SB), NOSPLIT, $0-73
	ARGUMENTS
	CLEAR(Y0, Y1)

loop:
	LOADB
	ROW((AX), Y0, Y1)
	ADDQ R12, AX
	DECQ CX
	JNZ  loop

	VBROADCASTSS alpha+48(FP), Y14
	CMPB         add+72(FP), $0
	JEQ          set
	ADDROW(Y0, Y1)
	VZEROUPPER
	RET

set:
	SETROW(Y0, Y1)
	VZEROUPPER
	RET
