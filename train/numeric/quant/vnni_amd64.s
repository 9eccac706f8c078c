#include "go_asm.h"
#include "textflag.h"

// The sums of the tile are held in Z0 to Z27, two registers a row, the panel's group of 32 columns in Z28
// and Z29. One broadcast of a row's group feeds two instructions of 64 multiply-adds each, or of 32 in the
// loud part.

#define ROW(multiply, at, s0, s1) \
	VPBROADCASTD at, Z30; \
	multiply     Z28, Z30, s0; \
	multiply     Z29, Z30, s1

#define ROWS(multiply) \
	VMOVDQU32 (SI), Z28; \
	VMOVDQU32 64(SI), Z29; \
	ADDQ      $128, SI; \
	ROW(multiply, (AX), Z0, Z1); \
	ROW(multiply, (AX)(R8*1), Z2, Z3); \
	ROW(multiply, (AX)(R8*2), Z4, Z5); \
	ROW(multiply, (AX)(R9*1), Z6, Z7); \
	ROW(multiply, (AX)(R8*4), Z8, Z9); \
	ROW(multiply, (AX)(R10*1), Z10, Z11); \
	ROW(multiply, (AX)(R9*2), Z12, Z13); \
	ROW(multiply, (AX)(R11*1), Z14, Z15); \
	ROW(multiply, (AX)(R8*8), Z16, Z17); \
	ROW(multiply, (BX), Z18, Z19); \
	ROW(multiply, (BX)(R8*1), Z20, Z21); \
	ROW(multiply, (BX)(R8*2), Z22, Z23); \
	ROW(multiply, (BX)(R9*1), Z24, Z25); \
	ROW(multiply, (BX)(R8*4), Z26, Z27); \
	ADDQ $4, AX; \
	ADDQ $4, BX

// (sum + half) >> shift: half in Z30, shift in X31.
#define SHIFT(s0, s1) \
	VPADDD Z30, s0, s0; \
	VPADDD Z30, s1, s1; \
	VPSRAD X31, s0, s0; \
	VPSRAD X31, s1, s1

#define CLEAR(s0, s1) \
	VPXORD s0, s0, s0; \
	VPXORD s1, s1, s1

// y = (sum − z·Σw)·s·c + bias of row i: z at R10, s at R9, Σw at R11, c at R12, the bias at BX.
#define OUT(i, s0, s1) \
	VPBROADCASTD (i*4)(R10), Z28; \
	VBROADCASTSS (i*4)(R9), Z29; \
	VPMULLD      (R11), Z28, Z30; \
	VPMULLD      64(R11), Z28, Z31; \
	VPSUBD       Z30, s0, s0; \
	VPSUBD       Z31, s1, s1; \
	VCVTDQ2PS    s0, s0; \
	VCVTDQ2PS    s1, s1; \
	VMULPS       Z29, s0, s0; \
	VMULPS       Z29, s1, s1; \
	VMULPS       (R12), s0, s0; \
	VMULPS       64(R12), s1, s1; \
	VADDPS       (BX), s0, s0; \
	VADDPS       64(BX), s1, s1; \
	VMOVUPS      s0, (DI); \
	VMOVUPS      s1, 64(DI); \
	ADDQ         DX, DI

// func tile14x32(t *tile)
TEXT ·tile14x32(SB), NOSPLIT, $0-8
	MOVQ t+0(FP), R13
	MOVQ tile_a(R13), AX
	MOVQ tile_stride(R13), R8
	MOVQ tile_b(R13), SI
	LEAQ (R8)(R8*2), R9  // 3 rows
	LEAQ (R8)(R8*4), R10 // 5 rows
	LEAQ (R9)(R8*4), R11 // 7 rows
	LEAQ (AX)(R8*8), BX
	ADDQ R8, BX          // row 9

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

	MOVQ  tile_loud(R13), CX
	TESTQ CX, CX
	JZ    quiet

loud:
	ROWS(VPDPWSSD)
	DECQ CX
	JNZ  loud

	VPBROADCASTD tile_half(R13), Z30
	VMOVQ        tile_shift(R13), X31
	SHIFT(Z0, Z1)
	SHIFT(Z2, Z3)
	SHIFT(Z4, Z5)
	SHIFT(Z6, Z7)
	SHIFT(Z8, Z9)
	SHIFT(Z10, Z11)
	SHIFT(Z12, Z13)
	SHIFT(Z14, Z15)
	SHIFT(Z16, Z17)
	SHIFT(Z18, Z19)
	SHIFT(Z20, Z21)
	SHIFT(Z22, Z23)
	SHIFT(Z24, Z25)
	SHIFT(Z26, Z27)

quiet:
	MOVQ tile_groups(R13), CX

loop:
	ROWS(VPDPBUSD)
	DECQ CX
	JNZ  loop

	MOVQ tile_scales(R13), R9
	MOVQ tile_zeros(R13), R10
	MOVQ tile_sums(R13), R11
	MOVQ tile_column(R13), R12
	MOVQ tile_bias(R13), BX
	MOVQ tile_y(R13), DI
	MOVQ tile_ldy(R13), DX
	OUT(0, Z0, Z1)
	OUT(1, Z2, Z3)
	OUT(2, Z4, Z5)
	OUT(3, Z6, Z7)
	OUT(4, Z8, Z9)
	OUT(5, Z10, Z11)
	OUT(6, Z12, Z13)
	OUT(7, Z14, Z15)
	OUT(8, Z16, Z17)
	OUT(9, Z18, Z19)
	OUT(10, Z20, Z21)
	OUT(11, Z22, Z23)
	OUT(12, Z24, Z25)
	OUT(13, Z26, Z27)
	VZEROUPPER
	RET
