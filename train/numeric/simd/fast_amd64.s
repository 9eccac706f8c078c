#include "textflag.h"

// The constants of fastGELUOf.
DATA fast<>+0(SB)/4, $4.0
DATA fast<>+4(SB)/4, $-4.0
DATA fast<>+8(SB)/4, $2.2784758968441565e-08
DATA fast<>+12(SB)/4, $-1.5987710639819852e-06
DATA fast<>+16(SB)/4, $4.7958834329620004e-05
DATA fast<>+20(SB)/4, $-0.0008140470599755645
DATA fast<>+24(SB)/4, $0.008772537112236023
DATA fast<>+28(SB)/4, $-0.06457342207431793
DATA fast<>+32(SB)/4, $0.3978835642337799
DATA fast<>+36(SB)/4, $0.5
DATA fast<>+40(SB)/4, $1.0
GLOBL fast<>(SB), RODATA|NOPTR, $44

// func fastGELU(dst, x *float32, n int)
TEXT ·fastGELU(SB), NOSPLIT, $0-24
	MOVQ         dst+0(FP), DI
	MOVQ         x+8(FP), SI
	MOVQ         n+16(FP), CX
	VBROADCASTSS fast<>+0(SB), Y4
	VBROADCASTSS fast<>+4(SB), Y5
	VBROADCASTSS fast<>+8(SB), Y6
	VBROADCASTSS fast<>+12(SB), Y7
	VBROADCASTSS fast<>+16(SB), Y8
	VBROADCASTSS fast<>+20(SB), Y9
	VBROADCASTSS fast<>+24(SB), Y10
	VBROADCASTSS fast<>+28(SB), Y11
	VBROADCASTSS fast<>+32(SB), Y12
	VBROADCASTSS fast<>+36(SB), Y13
	VBROADCASTSS fast<>+40(SB), Y14
	VXORPS       Y15, Y15, Y15

	// MIN and MAX give their second source, the first in this notation, if one is NaN.
loop:
	VMOVUPS (SI), Y0
	VMAXPS  Y0, Y5, Y1
	VMINPS  Y1, Y4, Y1  // t
	VMULPS  Y1, Y1, Y2  // u
	VMULPS  Y6, Y2, Y3
	VADDPS  Y7, Y3, Y3
	VMULPS  Y2, Y3, Y3
	VADDPS  Y8, Y3, Y3
	VMULPS  Y2, Y3, Y3
	VADDPS  Y9, Y3, Y3
	VMULPS  Y2, Y3, Y3
	VADDPS  Y10, Y3, Y3
	VMULPS  Y2, Y3, Y3
	VADDPS  Y11, Y3, Y3
	VMULPS  Y2, Y3, Y3
	VADDPS  Y12, Y3, Y3
	VMULPS  Y1, Y3, Y3
	VADDPS  Y13, Y3, Y3
	VMAXPS  Y3, Y15, Y3
	VMINPS  Y3, Y14, Y3
	VMULPS  Y0, Y3, Y3
	VMOVUPS Y3, (DI)
	ADDQ    $32, SI
	ADDQ    $32, DI
	SUBQ    $8, CX
	JNE     loop
	VZEROUPPER
	RET

// The sum of Y0's lanes to X0's first: across in norm.go.
#define ACROSS \
	VEXTRACTF128 $1, Y0, X1; \
	VADDPS       X1, X0, X0; \
	VPSHUFD      $0x4e, X0, X1; \
	VADDPS       X1, X0, X0; \
	VPSHUFD      $0xb1, X0, X1; \
	VADDPS       X1, X0, X0

// func addSum(dst, x, y *float32, n int) float32
TEXT ·addSum(SB), NOSPLIT, $0-36
	MOVQ   dst+0(FP), DI
	MOVQ   x+8(FP), SI
	MOVQ   y+16(FP), DX
	MOVQ   n+24(FP), CX
	VXORPS Y0, Y0, Y0

loop:
	VMOVUPS (SI), Y1
	VADDPS  (DX), Y1, Y1
	VMOVUPS Y1, (DI)
	VADDPS  Y1, Y0, Y0
	ADDQ    $32, SI
	ADDQ    $32, DX
	ADDQ    $32, DI
	SUBQ    $8, CX
	JNE     loop
	ACROSS
	VMOVSS  X0, ret+32(FP)
	VZEROUPPER
	RET

// func squares(x *float32, n int, mean float32) float32
TEXT ·squares(SB), NOSPLIT, $0-28
	MOVQ         x+0(FP), SI
	MOVQ         n+8(FP), CX
	VBROADCASTSS mean+16(FP), Y2
	VXORPS       Y0, Y0, Y0

loop:
	VMOVUPS (SI), Y1
	VSUBPS  Y2, Y1, Y1
	VMULPS  Y1, Y1, Y1
	VADDPS  Y1, Y0, Y0
	ADDQ    $32, SI
	SUBQ    $8, CX
	JNE     loop
	ACROSS
	VMOVSS  X0, ret+24(FP)
	VZEROUPPER
	RET

// func affine(x, gain, bias *float32, n int, mean, scale float32)
TEXT ·affine(SB), NOSPLIT, $0-40
	MOVQ         x+0(FP), DI
	MOVQ         gain+8(FP), SI
	MOVQ         bias+16(FP), DX
	MOVQ         n+24(FP), CX
	VBROADCASTSS mean+32(FP), Y1
	VBROADCASTSS scale+36(FP), Y2

loop:
	VMOVUPS (DI), Y0
	VSUBPS  Y1, Y0, Y0
	VMULPS  Y2, Y0, Y0
	VMULPS  (SI), Y0, Y0
	VADDPS  (DX), Y0, Y0
	VMOVUPS Y0, (DI)
	ADDQ    $32, SI
	ADDQ    $32, DX
	ADDQ    $32, DI
	SUBQ    $8, CX
	JNE     loop
	VZEROUPPER
	RET
