#include "textflag.h"

DATA size<>+0(SB)/4, $0x7fffffff
GLOBL size<>(SB), RODATA|NOPTR, $4

// The greatest or least of the lanes of Y(a) ends in X(a)'s first; y is X(a) and z a register of its own.
#define ACROSS(instruction, a, y, z) \
	VEXTRACTF128 $1, a, z; \
	instruction  z, y, y; \
	VPSHUFD      $0x4e, y, z; \
	instruction  z, y, y; \
	VPSHUFD      $0xb1, y, z; \
	instruction  z, y, y

// func extremes(x, f *float32, n int) (low, high float32, top uint32)
TEXT ·extremes(SB), NOSPLIT, $0-36
	MOVQ         x+0(FP), SI
	MOVQ         f+8(FP), DX
	MOVQ         n+16(FP), CX
	VPBROADCASTD size<>+0(SB), Y15
	VPXOR        Y0, Y0, Y0 // least
	VPXOR        Y1, Y1, Y1
	VPXOR        Y2, Y2, Y2 // greatest
	VPXOR        Y3, Y3, Y3
	VPXOR        Y4, Y4, Y4 // in size, as bits
	VPXOR        Y5, Y5, Y5

loop:
	VMOVUPS (SI), Y6
	VMOVUPS 32(SI), Y7
	VMULPS  (DX), Y6, Y6
	VMULPS  32(DX), Y7, Y7
	VMINPS  Y6, Y0, Y0
	VMINPS  Y7, Y1, Y1
	VMAXPS  Y6, Y2, Y2
	VMAXPS  Y7, Y3, Y3
	VPAND   Y15, Y6, Y6
	VPAND   Y15, Y7, Y7
	VPMAXUD Y6, Y4, Y4
	VPMAXUD Y7, Y5, Y5
	ADDQ    $64, SI
	ADDQ    $64, DX
	SUBQ    $16, CX
	JNE     loop

	VMINPS  Y1, Y0, Y0
	VMAXPS  Y3, Y2, Y2
	VPMAXUD Y5, Y4, Y4
	ACROSS(VMINPS, Y0, X0, X1)
	ACROSS(VMAXPS, Y2, X2, X1)
	ACROSS(VPMAXUD, Y4, X4, X1)
	VMOVSS  X0, low+24(FP)
	VMOVSS  X2, high+28(FP)
	VMOVSS  X4, top+32(FP)
	VZEROUPPER
	RET

// func round8(words *uint32, x, f *float32, n int, inverse float32, zero int32)
TEXT ·round8(SB), NOSPLIT, $0-40
	MOVQ         words+0(FP), DI
	MOVQ         x+8(FP), SI
	MOVQ         f+16(FP), DX
	MOVQ         n+24(FP), CX
	VBROADCASTSS inverse+32(FP), Z1
	MOVL         zero+36(FP), AX
	VPBROADCASTD AX, Z2
	VPXORD       Z3, Z3, Z3

loop:
	VMOVUPS   (SI), Z0
	VMULPS    (DX), Z0, Z0
	VMULPS    Z1, Z0, Z0
	VCVTPS2DQ Z0, Z0
	VPADDD    Z2, Z0, Z0
	VPMAXSD   Z3, Z0, Z0
	VPMOVUSDB Z0, (DI)     // at most 255
	ADDQ      $64, SI
	ADDQ      $64, DX
	ADDQ      $16, DI
	SUBQ      $16, CX
	JNE       loop
	VZEROUPPER
	RET

// func round16(words *uint32, x, f *float32, n int, inverse float32, lowest, highest int32)
TEXT ·round16(SB), NOSPLIT, $0-44
	MOVQ         words+0(FP), DI
	MOVQ         x+8(FP), SI
	MOVQ         f+16(FP), DX
	MOVQ         n+24(FP), CX
	VBROADCASTSS inverse+32(FP), Y1
	MOVL         lowest+36(FP), AX
	VMOVD        AX, X2
	VPBROADCASTD X2, Y2
	MOVL         highest+40(FP), AX
	VMOVD        AX, X3
	VPBROADCASTD X3, Y3

loop:
	VMOVUPS   (SI), Y4
	VMOVUPS   32(SI), Y5
	VMULPS    (DX), Y4, Y4
	VMULPS    32(DX), Y5, Y5
	VMULPS    Y1, Y4, Y4
	VMULPS    Y1, Y5, Y5
	VCVTPS2DQ Y4, Y4
	VCVTPS2DQ Y5, Y5
	VPMAXSD   Y2, Y4, Y4
	VPMAXSD   Y2, Y5, Y5
	VPMINSD   Y3, Y4, Y4
	VPMINSD   Y3, Y5, Y5
	VPACKSSDW Y5, Y4, Y4
	VPERMQ    $0xd8, Y4, Y4 // VPACKSSDW keeps to halves of registers
	VMOVDQU   Y4, (DI)
	ADDQ      $64, SI
	ADDQ      $64, DX
	ADDQ      $32, DI
	SUBQ      $16, CX
	JNE       loop
	VZEROUPPER
	RET

// func split(quiet, loud, x *float32, mask *uint16, n int)
TEXT ·split(SB), NOSPLIT, $0-40
	MOVQ quiet+0(FP), DI
	MOVQ loud+8(FP), R8
	MOVQ x+16(FP), SI
	MOVQ mask+24(FP), DX
	MOVQ n+32(FP), CX

loop:
	MOVWLZX       (DX), AX
	KMOVW         AX, K1
	KNOTW         K1, K2
	VMOVUPS       (SI), Z0
	VCOMPRESSPS.Z Z0, K1, Z1
	VCOMPRESSPS.Z Z0, K2, Z2
	VMOVUPS       Z1, (R8)
	VMOVUPS       Z2, (DI)
	POPCNTL       AX, AX
	LEAQ          (R8)(AX*4), R8
	NEGQ          AX
	LEAQ          64(DI)(AX*4), DI
	ADDQ          $64, SI
	ADDQ          $2, DX
	SUBQ          $16, CX
	JNE           loop
	VZEROUPPER
	RET
