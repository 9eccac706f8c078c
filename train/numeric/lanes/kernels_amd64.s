#include "textflag.h"

#define ARGUMENTS \
	MOVQ index+16(FP), SI; \
	MOVQ value+24(FP), DX; \
	MOVQ count+32(FP), CX

// The place of the row's next column in bytes, from w, to AX and its value to Y8.
#define COLUMN(shift) \
	MOVLQSX      (SI), AX; \
	SHLQ         $shift, AX; \
	VBROADCASTSS (DX), Y8

// The one after it, to BX and Y9.
#define SECOND(shift) \
	MOVLQSX      4(SI), BX; \
	SHLQ         $shift, BX; \
	VBROADCASTSS 4(DX), Y9

#define NEXT(bytes) \
	ADDQ $bytes, SI; \
	ADDQ $bytes, DX

#define CLEAR8 \
	VXORPS Y0, Y0, Y0; \
	VXORPS Y1, Y1, Y1; \
	VXORPS Y2, Y2, Y2; \
	VXORPS Y3, Y3, Y3; \
	VXORPS Y4, Y4, Y4; \
	VXORPS Y5, Y5, Y5; \
	VXORPS Y6, Y6, Y6; \
	VXORPS Y7, Y7, Y7

// Columns are taken in pairs, the odd one first: two chains of additions
// where a single one would be as slow as its latency.

// func project8(out, w *float32, index *int32, value *float32, count int)
TEXT ·project8(SB), NOSPLIT, $0-40
	MOVQ out+0(FP), R8
	MOVQ w+8(FP), DI
	ARGUMENTS
	CLEAR8
	TESTQ $1, CX
	JEQ   pairs
	COLUMN(5)
	VMULPS (DI)(AX*1), Y8, Y0
	NEXT(4)

pairs:
	SHRQ $1, CX
	JEQ  done

loop:
	COLUMN(5)
	SECOND(5)
	VFMADD231PS (DI)(AX*1), Y8, Y0
	VFMADD231PS (DI)(BX*1), Y9, Y1
	NEXT(8)
	DECQ CX
	JNE  loop

done:
	VADDPS  Y1, Y0, Y0
	VMOVUPS Y0, (R8)
	VZEROUPPER
	RET

// func project16(out, w *float32, index *int32, value *float32, count int)
TEXT ·project16(SB), NOSPLIT, $0-40
	MOVQ out+0(FP), R8
	MOVQ w+8(FP), DI
	ARGUMENTS
	CLEAR8
	TESTQ $1, CX
	JEQ   pairs
	COLUMN(6)
	VMULPS (DI)(AX*1), Y8, Y0
	VMULPS 32(DI)(AX*1), Y8, Y1
	NEXT(4)

pairs:
	SHRQ $1, CX
	JEQ  done

loop:
	COLUMN(6)
	SECOND(6)
	VFMADD231PS (DI)(AX*1), Y8, Y0
	VFMADD231PS 32(DI)(AX*1), Y8, Y1
	VFMADD231PS (DI)(BX*1), Y9, Y2
	VFMADD231PS 32(DI)(BX*1), Y9, Y3
	NEXT(8)
	DECQ CX
	JNE  loop

done:
	VADDPS  Y2, Y0, Y0
	VADDPS  Y3, Y1, Y1
	VMOVUPS Y0, (R8)
	VMOVUPS Y1, 32(R8)
	VZEROUPPER
	RET

// func project32(out, w *float32, index *int32, value *float32, count int)
TEXT ·project32(SB), NOSPLIT, $0-40
	MOVQ out+0(FP), R8
	MOVQ w+8(FP), DI
	ARGUMENTS
	CLEAR8
	TESTQ $1, CX
	JEQ   pairs
	COLUMN(7)
	VMULPS (DI)(AX*1), Y8, Y0
	VMULPS 32(DI)(AX*1), Y8, Y1
	VMULPS 64(DI)(AX*1), Y8, Y2
	VMULPS 96(DI)(AX*1), Y8, Y3
	NEXT(4)

pairs:
	SHRQ $1, CX
	JEQ  done

loop:
	COLUMN(7)
	SECOND(7)
	VFMADD231PS (DI)(AX*1), Y8, Y0
	VFMADD231PS 32(DI)(AX*1), Y8, Y1
	VFMADD231PS 64(DI)(AX*1), Y8, Y2
	VFMADD231PS 96(DI)(AX*1), Y8, Y3
	VFMADD231PS (DI)(BX*1), Y9, Y4
	VFMADD231PS 32(DI)(BX*1), Y9, Y5
	VFMADD231PS 64(DI)(BX*1), Y9, Y6
	VFMADD231PS 96(DI)(BX*1), Y9, Y7
	NEXT(8)
	DECQ CX
	JNE  loop

done:
	VADDPS  Y4, Y0, Y0
	VADDPS  Y5, Y1, Y1
	VADDPS  Y6, Y2, Y2
	VADDPS  Y7, Y3, Y3
	VMOVUPS Y0, (R8)
	VMOVUPS Y1, 32(R8)
	VMOVUPS Y2, 64(R8)
	VMOVUPS Y3, 96(R8)
	VZEROUPPER
	RET

// func project64(out, w *float32, index *int32, value *float32, count int)
//
// Eight chains by itself.
TEXT ·project64(SB), NOSPLIT, $0-40
	MOVQ out+0(FP), R8
	MOVQ w+8(FP), DI
	ARGUMENTS
	CLEAR8

loop:
	COLUMN(8)
	VFMADD231PS (DI)(AX*1), Y8, Y0
	VFMADD231PS 32(DI)(AX*1), Y8, Y1
	VFMADD231PS 64(DI)(AX*1), Y8, Y2
	VFMADD231PS 96(DI)(AX*1), Y8, Y3
	VFMADD231PS 128(DI)(AX*1), Y8, Y4
	VFMADD231PS 160(DI)(AX*1), Y8, Y5
	VFMADD231PS 192(DI)(AX*1), Y8, Y6
	VFMADD231PS 224(DI)(AX*1), Y8, Y7
	NEXT(4)
	DECQ CX
	JNE  loop

	VMOVUPS Y0, (R8)
	VMOVUPS Y1, 32(R8)
	VMOVUPS Y2, 64(R8)
	VMOVUPS Y3, 96(R8)
	VMOVUPS Y4, 128(R8)
	VMOVUPS Y5, 160(R8)
	VMOVUPS Y6, 192(R8)
	VMOVUPS Y7, 224(R8)
	VZEROUPPER
	RET

// w at this place += value · d, eight lanes of which are in a register.
#define MOVE(at, d) \
	VMOVUPS     at(DI)(AX*1), Y9; \
	VFMADD231PS d, Y8, Y9; \
	VMOVUPS     Y9, at(DI)(AX*1)

// func add8(w, d *float32, index *int32, value *float32, count int)
TEXT ·add8(SB), NOSPLIT, $0-40
	MOVQ w+0(FP), DI
	MOVQ d+8(FP), R8
	ARGUMENTS
	VMOVUPS (R8), Y0

loop:
	COLUMN(5)
	MOVE(0, Y0)
	NEXT(4)
	DECQ CX
	JNE  loop
	VZEROUPPER
	RET

// func add16(w, d *float32, index *int32, value *float32, count int)
TEXT ·add16(SB), NOSPLIT, $0-40
	MOVQ w+0(FP), DI
	MOVQ d+8(FP), R8
	ARGUMENTS
	VMOVUPS (R8), Y0
	VMOVUPS 32(R8), Y1

loop:
	COLUMN(6)
	MOVE(0, Y0)
	MOVE(32, Y1)
	NEXT(4)
	DECQ CX
	JNE  loop
	VZEROUPPER
	RET

// func add32(w, d *float32, index *int32, value *float32, count int)
TEXT ·add32(SB), NOSPLIT, $0-40
	MOVQ w+0(FP), DI
	MOVQ d+8(FP), R8
	ARGUMENTS
	VMOVUPS (R8), Y0
	VMOVUPS 32(R8), Y1
	VMOVUPS 64(R8), Y2
	VMOVUPS 96(R8), Y3

loop:
	COLUMN(7)
	MOVE(0, Y0)
	MOVE(32, Y1)
	MOVE(64, Y2)
	MOVE(96, Y3)
	NEXT(4)
	DECQ CX
	JNE  loop
	VZEROUPPER
	RET

// func add64(w, d *float32, index *int32, value *float32, count int)
TEXT ·add64(SB), NOSPLIT, $0-40
	MOVQ w+0(FP), DI
	MOVQ d+8(FP), R8
	ARGUMENTS
	VMOVUPS (R8), Y0
	VMOVUPS 32(R8), Y1
	VMOVUPS 64(R8), Y2
	VMOVUPS 96(R8), Y3
	VMOVUPS 128(R8), Y4
	VMOVUPS 160(R8), Y5
	VMOVUPS 192(R8), Y6
	VMOVUPS 224(R8), Y7

loop:
	COLUMN(8)
	MOVE(0, Y0)
	MOVE(32, Y1)
	MOVE(64, Y2)
	MOVE(96, Y3)
	MOVE(128, Y4)
	MOVE(160, Y5)
	MOVE(192, Y6)
	MOVE(224, Y7)
	NEXT(4)
	DECQ CX
	JNE  loop
	VZEROUPPER
	RET

// func step(next, delta, margin, sign, beta *float32, n int, d, inverse float32) (most float32)
TEXT ·step(SB), NOSPLIT, $0-60
	MOVQ         next+0(FP), DI
	MOVQ         delta+8(FP), SI
	MOVQ         margin+16(FP), DX
	MOVQ         sign+24(FP), R8
	MOVQ         beta+32(FP), R9
	MOVQ         n+40(FP), CX
	VBROADCASTSS d+48(FP), Y8
	VBROADCASTSS inverse+52(FP), Y9
	VXORPS       Y10, Y10, Y10
	VXORPS       Y11, Y11, Y11
	VPCMPEQD     Y12, Y12, Y12
	VPSRLD       $1, Y12, Y12     // all but the sign

loop:
	VMOVUPS      (R9), Y0
	VMOVUPS      (R8), Y1
	VMOVUPS      (DX), Y2
	VFMADD231PS  Y8, Y0, Y2 // m + d·β
	VSUBPS       Y1, Y2, Y2
	VMOVAPS      Y0, Y3
	VFNMADD231PS Y9, Y2, Y3 // β − (…)/h
	VMULPS       Y1, Y3, Y3
	VMAXPS       Y10, Y3, Y3
	VMULPS       Y1, Y3, Y3
	VMOVUPS      Y3, (DI)
	VSUBPS       Y0, Y3, Y3
	VMOVUPS      Y3, (SI)
	VANDPS       Y12, Y3, Y3
	VMAXPS       Y3, Y11, Y11
	ADDQ         $32, DI
	ADDQ         $32, SI
	ADDQ         $32, DX
	ADDQ         $32, R8
	ADDQ         $32, R9
	SUBQ         $8, CX
	JNE          loop

	VEXTRACTF128 $1, Y11, X0
	VMAXPS       X0, X11, X0
	VMOVHLPS     X0, X0, X1
	VMAXPS       X1, X0, X0
	VMOVSHDUP    X0, X1
	VMAXSS       X1, X0, X0
	VMOVSS       X0, most+56(FP)
	VZEROUPPER
	RET

// func atLeast(x *float32, n int, least float32) (which uint64)
TEXT ·atLeast(SB), NOSPLIT, $0-32
	MOVQ         x+0(FP), SI
	MOVQ         n+8(FP), DX
	VBROADCASTSS least+16(FP), Y8
	VPCMPEQD     Y12, Y12, Y12
	VPSRLD       $1, Y12, Y12     // all but the sign
	XORQ         R8, R8
	XORQ         CX, CX

loop:
	VANDPS    (SI)(CX*4), Y12, Y0
	VCMPPS    $13, Y8, Y0, Y0 // greater or equal
	VMOVMSKPS Y0, AX
	SHLQ      CX, AX
	ORQ       AX, R8
	ADDQ      $8, CX
	CMPQ      CX, DX
	JLT       loop

	MOVQ R8, which+24(FP)
	VZEROUPPER
	RET
