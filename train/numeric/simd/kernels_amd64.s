#include "textflag.h"

// The constants of exp in softmax.go and of tail in gelu.go.
DATA k<>+0(SB)/4, $1.44269504088896340736
DATA k<>+4(SB)/4, $0.693359375
DATA k<>+8(SB)/4, $-2.12194440e-4
DATA k<>+12(SB)/4, $1.0
DATA k<>+16(SB)/4, $0.5
DATA k<>+20(SB)/4, $0.16666512191295624
DATA k<>+24(SB)/4, $0.0416661873459816
DATA k<>+28(SB)/4, $0.008369598537683487
DATA k<>+32(SB)/4, $0.0013951719738543034
DATA k<>+36(SB)/4, $127
DATA k<>+40(SB)/4, $13.19
DATA k<>+44(SB)/4, $0.3
DATA k<>+48(SB)/4, $0.11968645453453064
DATA k<>+52(SB)/4, $0.11957617849111557
DATA k<>+56(SB)/4, $0.11020111292600632
DATA k<>+60(SB)/4, $0.07854140549898148
DATA k<>+64(SB)/4, $0.09573967754840851
DATA k<>+68(SB)/4, $-0.07868277281522751
DATA k<>+72(SB)/4, $0.19093306362628937
DATA k<>+76(SB)/4, $-0.22760125994682312
DATA k<>+80(SB)/4, $0.11218512058258057
DATA k<>+84(SB)/4, $-0.02057897485792637
DATA k<>+88(SB)/4, $0.39894228040143267794
DATA k<>+92(SB)/4, $0x7fffffff
DATA k<>+96(SB)/4, $-87.0
DATA k<>+100(SB)/4, $-0.5
GLOBL k<>(SB), RODATA|NOPTR, $104

// p = p·by + constant
#define TERM(constant, by, p) \
	VBROADCASTSS k<>+constant(SB), Y15; \
	VFMADD213PS  Y15, by, p

#define EXPCONSTANTS \
	VBROADCASTSS k<>+12(SB), Y9; \
	VBROADCASTSS k<>+0(SB), Y11; \
	VBROADCASTSS k<>+4(SB), Y12; \
	VBROADCASTSS k<>+8(SB), Y13

// Y2 = k·ln 2 + r: k to Y4, r to Y2.
#define REDUCE \
	VMULPS       Y11, Y2, Y4; \
	VROUNDPS     $0, Y4, Y4; \
	VFNMADD231PS Y12, Y4, Y2; \
	VFNMADD231PS Y13, Y4, Y2

// Y6 = 2ᵏ·eʳ
#define POWER \
	VBROADCASTSS k<>+32(SB), Y6; \
	TERM(28, Y2, Y6); \
	TERM(24, Y2, Y6); \
	TERM(20, Y2, Y6); \
	TERM(16, Y2, Y6); \
	VFMADD213PS  Y9, Y2, Y6; \
	VFMADD213PS  Y9, Y2, Y6; \
	VCVTPS2DQ    Y4, Y4; \
	VPBROADCASTD k<>+36(SB), Y15; \
	VPADDD       Y15, Y4, Y4; \
	VPSLLD       $23, Y4, Y4; \
	VMULPS       Y4, Y6, Y6

#define GELUCONSTANTS \
	EXPCONSTANTS; \
	VBROADCASTSS k<>+40(SB), Y8; \
	VXORPS       Y10, Y10, Y10; \
	VBROADCASTSS k<>+100(SB), Y14

// Of x in Y0: t = min(|x|, reach) to Y1, exp(−t²/2) (0 from reach on) to Y6,
// Mills' ratio to Y7. MIN gives its second source, the first in this
// notation, if one is NaN; comparison 9 is "not greater or equal".
#define TAIL \
	VBROADCASTSS k<>+92(SB), Y15; \
	VANDPS       Y15, Y0, Y1; \
	VMINPS       Y1, Y8, Y1; \
	VMULPS       Y1, Y1, Y2; \
	VMOVAPS      Y1, Y3; \
	VFMSUB213PS  Y2, Y1, Y3; \
	VMULPS       Y14, Y2, Y2; \
	REDUCE; \
	VFMADD231PS  Y14, Y3, Y2; \
	POWER; \
	VCMPPS       $9, Y8, Y1, Y3; \
	VANDPS       Y3, Y6, Y6; \
	VBROADCASTSS k<>+44(SB), Y5; \
	VFMADD213PS  Y9, Y1, Y5; \
	VDIVPS       Y5, Y9, Y5; \
	VBROADCASTSS k<>+84(SB), Y7; \
	TERM(80, Y5, Y7); \
	TERM(76, Y5, Y7); \
	TERM(72, Y5, Y7); \
	TERM(68, Y5, Y7); \
	TERM(64, Y5, Y7); \
	TERM(60, Y5, Y7); \
	TERM(56, Y5, Y7); \
	TERM(52, Y5, Y7); \
	TERM(48, Y5, Y7); \
	VMULPS       Y5, Y7, Y7

// func gelu(dst, x *float32, n int)
TEXT ·gelu(SB), NOSPLIT, $0-24
	MOVQ dst+0(FP), DI
	MOVQ x+8(FP), SI
	MOVQ n+16(FP), CX
	GELUCONSTANTS

loop:
	VMOVUPS (SI), Y0
	TAIL

	// max(0, x) − t·Φ(−t)
	VMULPS       Y6, Y7, Y7
	VMAXPS       Y0, Y10, Y2
	VFNMADD231PS Y7, Y1, Y2
	VMOVUPS      Y2, (DI)
	ADDQ         $32, SI
	ADDQ         $32, DI
	SUBQ         $8, CX
	JNE          loop
	VZEROUPPER
	RET

// func geluSlope(dst, d, x *float32, n int)
TEXT ·geluSlope(SB), NOSPLIT, $0-32
	MOVQ dst+0(FP), DI
	MOVQ d+8(FP), DX
	MOVQ x+16(FP), SI
	MOVQ n+24(FP), CX
	GELUCONSTANTS

loop:
	VMOVUPS (SI), Y0
	TAIL

	// h = Φ(−t) − t·φ(t) is the slope at −t, and 1 − h the one at t.
	VBROADCASTSS k<>+88(SB), Y15
	VFNMADD231PS Y15, Y1, Y7
	VMULPS       Y6, Y7, Y7
	VSUBPS       Y7, Y9, Y2
	VBLENDVPS    Y0, Y7, Y2, Y2
	VMULPS       (DX), Y2, Y2
	VMOVUPS      Y2, (DI)
	ADDQ         $32, SI
	ADDQ         $32, DX
	ADDQ         $32, DI
	SUBQ         $8, CX
	JNE          loop
	VZEROUPPER
	RET

// func maximum(x *float32, n int) float32
TEXT ·maximum(SB), NOSPLIT, $0-20
	MOVQ    x+0(FP), SI
	MOVQ    n+8(FP), CX
	VMOVUPS (SI), Y0

loop:
	VMAXPS (SI), Y0, Y0
	ADDQ   $32, SI
	SUBQ   $8, CX
	JNE    loop

	VEXTRACTF128 $1, Y0, X1
	VMAXPS       X1, X0, X0
	VMOVHLPS     X0, X0, X1
	VMAXPS       X1, X0, X0
	VMOVSHDUP    X0, X1
	VMAXSS       X1, X0, X0
	VMOVSS       X0, ret+16(FP)
	VZEROUPPER
	RET

// func expSum(x *float32, n int, top float32) float32
TEXT ·expSum(SB), NOSPLIT, $0-28
	MOVQ         x+0(FP), SI
	MOVQ         n+8(FP), CX
	VBROADCASTSS top+16(FP), Y7
	EXPCONSTANTS
	VBROADCASTSS k<>+96(SB), Y8
	VXORPS       Y10, Y10, Y10

loop:
	VMOVUPS (SI), Y0
	VSUBPS  Y7, Y0, Y0
	VMAXPS  Y0, Y8, Y2
	REDUCE
	POWER
	VCMPPS  $5, Y8, Y0, Y3 // not less than −87
	VANDPS  Y3, Y6, Y6
	VMOVUPS Y6, (SI)
	VADDPS  Y6, Y10, Y10
	ADDQ    $32, SI
	SUBQ    $8, CX
	JNE     loop

	VEXTRACTF128 $1, Y10, X1
	VADDPS       X1, X10, X0
	VMOVHLPS     X0, X0, X1
	VADDPS       X1, X0, X0
	VMOVSHDUP    X0, X1
	VADDSS       X1, X0, X0
	VMOVSS       X0, ret+24(FP)
	VZEROUPPER
	RET

// func scale(x *float32, n int, f float32)
TEXT ·scale(SB), NOSPLIT, $0-20
	MOVQ         x+0(FP), SI
	MOVQ         n+8(FP), CX
	VBROADCASTSS f+16(FP), Y0

loop:
	VMULPS  (SI), Y0, Y1
	VMOVUPS Y1, (SI)
	ADDQ    $32, SI
	SUBQ    $8, CX
	JNE     loop
	VZEROUPPER
	RET
