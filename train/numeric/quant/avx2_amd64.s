#include "go_asm.h"
#include "textflag.h"

// The sums of the tile are held in Y0 to Y11, two registers a row, the panel's group of 16 columns in Y12
// and Y13. The products of a group are of 16 bits each and summed to 32.

#define ROW(at, s0, s1) \
	VPBROADCASTD at, Y14; \
	VPMADDWD     Y12, Y14, Y15; \
	VPADDD       Y15, s0, s0; \
	VPMADDWD     Y13, Y14, Y14; \
	VPADDD       Y14, s1, s1

#define ROWS \
	VMOVDQU (SI), Y12; \
	VMOVDQU 32(SI), Y13; \
	ADDQ    $64, SI; \
	ROW((AX), Y0, Y1); \
	ROW((AX)(R8*1), Y2, Y3); \
	ROW((AX)(R8*2), Y4, Y5); \
	ROW((AX)(R9*1), Y6, Y7); \
	ROW((AX)(R8*4), Y8, Y9); \
	ROW((AX)(R10*1), Y10, Y11); \
	ADDQ $4, AX

// (sum + half) >> shift: half in Y14, shift in X15.
#define SHIFT(s0, s1) \
	VPADDD Y14, s0, s0; \
	VPADDD Y14, s1, s1; \
	VPSRAD X15, s0, s0; \
	VPSRAD X15, s1, s1

#define CLEAR(s0, s1) \
	VPXOR s0, s0, s0; \
	VPXOR s1, s1, s1

// y = sum·s·c + bias of row i: s at R9, c at R12, the bias at BX.
#define OUT(i, s0, s1) \
	VBROADCASTSS (i*4)(R9), Y14; \
	VCVTDQ2PS    s0, s0; \
	VCVTDQ2PS    s1, s1; \
	VMULPS       Y14, s0, s0; \
	VMULPS       Y14, s1, s1; \
	VMULPS       (R12), s0, s0; \
	VMULPS       32(R12), s1, s1; \
	VADDPS       (BX), s0, s0; \
	VADDPS       32(BX), s1, s1; \
	VMOVUPS      s0, (DI); \
	VMOVUPS      s1, 32(DI); \
	ADDQ         DX, DI

// func tile6x16(t *tile)
TEXT ·tile6x16(SB), NOSPLIT, $0-8
	MOVQ t+0(FP), R13
	MOVQ tile_a(R13), AX
	MOVQ tile_stride(R13), R8
	MOVQ tile_b(R13), SI
	LEAQ (R8)(R8*2), R9  // 3 rows
	LEAQ (R8)(R8*4), R10 // 5 rows

	CLEAR(Y0, Y1)
	CLEAR(Y2, Y3)
	CLEAR(Y4, Y5)
	CLEAR(Y6, Y7)
	CLEAR(Y8, Y9)
	CLEAR(Y10, Y11)

	MOVQ  tile_loud(R13), CX
	TESTQ CX, CX
	JZ    quiet

loud:
	ROWS
	DECQ CX
	JNZ  loud

	VPBROADCASTD tile_half(R13), Y14
	VMOVQ        tile_shift(R13), X15
	SHIFT(Y0, Y1)
	SHIFT(Y2, Y3)
	SHIFT(Y4, Y5)
	SHIFT(Y6, Y7)
	SHIFT(Y8, Y9)
	SHIFT(Y10, Y11)

quiet:
	MOVQ tile_groups(R13), CX

loop:
	ROWS
	DECQ CX
	JNZ  loop

	MOVQ tile_scales(R13), R9
	MOVQ tile_column(R13), R12
	MOVQ tile_bias(R13), BX
	MOVQ tile_y(R13), DI
	MOVQ tile_ldy(R13), DX
	OUT(0, Y0, Y1)
	OUT(1, Y2, Y3)
	OUT(2, Y4, Y5)
	OUT(3, Y6, Y7)
	OUT(4, Y8, Y9)
	OUT(5, Y10, Y11)
	VZEROUPPER
	RET
