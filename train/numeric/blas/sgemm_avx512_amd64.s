#include "textflag.h"

// The tile of C is held in Z0 to Z27, two registers a row; B's row of 32 in
// Z28 and Z29. One broadcast of A feeds two multiply-adds, so a step of 14
// rows is 28 of them and 16 loads: bound by arithmetic, not by loads.

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
	VMOVUPS (SI), Z28; \
	VMOVUPS 64(SI), Z29; \
	ADDQ    R13, SI

#define ROW(at, c0, c1) \
	VBROADCASTSS at, Z30; \
	VFMADD231PS  Z28, Z30, c0; \
	VFMADD231PS  Z29, Z30, c1

#define CLEAR(c0, c1) \
	VPXORD c0, c0, c0; \
	VPXORD c1, c1, c1

// C = alpha·tile + C, and C = alpha·tile; alpha in Z30.
#define ADDROW(c0, c1) \
	VFMADD213PS (DI), Z30, c0; \
	VFMADD213PS 64(DI), Z30, c1; \
	VMOVUPS     c0, (DI); \
	VMOVUPS     c1, 64(DI); \
	ADDQ        DX, DI

#define SETROW(c0, c1) \
	VMULPS  c0, Z30, c0; \
	VMULPS  c1, Z30, c1; \
	VMOVUPS c0, (DI); \
	VMOVUPS c1, 64(DI); \
	ADDQ    DX, DI

// C's rows are on their way while the sums are made.
#define FETCHROW \
	PREFETCHT0 (BX); \
	PREFETCHT0 64(BX); \
	ADDQ       DX, BX

// func tile14x32(k int, a *float32, rs, cs uintptr, b *float32, bs uintptr, alpha float32, c *float32, ldc uintptr, add bool)
TEXT ·tile14x32(SB), NOSPLIT, $0-73
	ARGUMENTS
	LEAQ (R8)(R8*2), R9  // 3 rows
	LEAQ (R8)(R8*4), R10 // 5 rows
	LEAQ (R9)(R8*4), R11 // 7 rows
	MOVQ DI, BX
	FETCHROW
	FETCHROW
	FETCHROW
	FETCHROW
	FETCHROW
	FETCHROW
	FETCHROW
	FETCHROW
	FETCHROW
	FETCHROW
	FETCHROW
	FETCHROW
	FETCHROW
	FETCHROW
	LEAQ (AX)(R8*8), BX
	ADDQ R8, BX // row 9

	CLEAR(Z0, Z1)
	CLEAR(Z2, Z3)
	CLEAR(Z4, Z5)
	CLEAR(Z6, Z7)
	CLEAR(Z8, Z9)
	CLEAR(Z10, Z11)
	CLEAR(Z12, Z13)
	CLEAR(Z14, Z15)
	CLEAR(Z16, Z17)
	CLEAR(Z18, Z19)
	CLEAR(Z20, Z21)
	CLEAR(Z22, Z23)
	CLEAR(Z24, Z25)
	CLEAR(Z26, Z27)

loop:
	LOADB
	ROW((AX), Z0, Z1)
	ROW((AX)(R8*1), Z2, Z3)
	ROW((AX)(R8*2), Z4, Z5)
	ROW((AX)(R9*1), Z6, Z7)
	ROW((AX)(R8*4), Z8, Z9)
	ROW((AX)(R10*1), Z10, Z11)
	ROW((AX)(R9*2), Z12, Z13)
	ROW((AX)(R11*1), Z14, Z15)
	ROW((AX)(R8*8), Z16, Z17)
	ROW((BX), Z18, Z19)
	ROW((BX)(R8*1), Z20, Z21)
	ROW((BX)(R8*2), Z22, Z23)
	ROW((BX)(R9*1), Z24, Z25)
	ROW((BX)(R8*4), Z26, Z27)
	ADDQ R12, AX
	ADDQ R12, BX
	DECQ CX
	JNZ  loop

	VBROADCASTSS alpha+48(FP), Z30
	CMPB         add+72(FP), $0
	JEQ          set
	ADDROW(Z0, Z1)
	ADDROW(Z2, Z3)
	ADDROW(Z4, Z5)
	ADDROW(Z6, Z7)
	ADDROW(Z8, Z9)
	ADDROW(Z10, Z11)
	ADDROW(Z12, Z13)
	ADDROW(Z14, Z15)
	ADDROW(Z16, Z17)
	ADDROW(Z18, Z19)
	ADDROW(Z20, Z21)
	ADDROW(Z22, Z23)
	ADDROW(Z24, Z25)
	ADDROW(Z26, Z27)
	VZEROUPPER
	RET

set:
	SETROW(Z0, Z1)
	SETROW(Z2, Z3)
	SETROW(Z4, Z5)
	SETROW(Z6, Z7)
	SETROW(Z8, Z9)
	SETROW(Z10, Z11)
	SETROW(Z12, Z13)
	SETROW(Z14, Z15)
	SETROW(Z16, Z17)
	SETROW(Z18, Z19)
	SETROW(Z20, Z21)
	SETROW(Z22, Z23)
	SETROW(Z24, Z25)
	SETROW(Z26, Z27)
	VZEROUPPER
	RET

// func tile4x32(k int, a *float32, rs, cs uintptr, b *float32, bs uintptr, alpha float32, c *float32, ldc uintptr, add bool)
TEXT ·tile4x32(SB), NOSPLIT, $0-73
	ARGUMENTS
	LEAQ (R8)(R8*2), R9 // 3 rows

	CLEAR(Z0, Z1)
	CLEAR(Z2, Z3)
	CLEAR(Z4, Z5)
	CLEAR(Z6, Z7)

loop:
	LOADB
	ROW((AX), Z0, Z1)
	ROW((AX)(R8*1), Z2, Z3)
	ROW((AX)(R8*2), Z4, Z5)
	ROW((AX)(R9*1), Z6, Z7)
	ADDQ R12, AX
	DECQ CX
	JNZ  loop

	VBROADCASTSS alpha+48(FP), Z30
	CMPB         add+72(FP), $0
	JEQ          set
	ADDROW(Z0, Z1)
	ADDROW(Z2, Z3)
	ADDROW(Z4, Z5)
	ADDROW(Z6, Z7)
	VZEROUPPER
	RET

set:
	SETROW(Z0, Z1)
	SETROW(Z2, Z3)
	SETROW(Z4, Z5)
	SETROW(Z6, Z7)
	VZEROUPPER
	RET

// func tile1x32(k int, a *float32, rs, cs uintptr, b *float32, bs uintptr, alpha float32, c *float32, ldc uintptr, add bool)
TEXT ·tile1x32(SB), NOSPLIT, $0-73
	ARGUMENTS
	CLEAR(Z0, Z1)

loop:
	LOADB
	ROW((AX), Z0, Z1)
	ADDQ R12, AX
	DECQ CX
	JNZ  loop

	VBROADCASTSS alpha+48(FP), Z30
	CMPB         add+72(FP), $0
	JEQ          set
	ADDROW(Z0, Z1)
	VZEROUPPER
	RET

set:
	SETROW(Z0, Z1)
	VZEROUPPER
	RET
