#include "textflag.h"

// func productsAVX2(out *int32, query *int16, codes *int8, rows, dim int)
TEXT ·productsAVX2(SB), NOSPLIT, $0-40
	MOVQ out+0(FP), DI
	MOVQ query+8(FP), SI
	MOVQ codes+16(FP), BX
	MOVQ rows+24(FP), CX
	MOVQ dim+32(FP), DX

row:
	VPXOR Y0, Y0, Y0
	XORQ  AX, AX

step:
	VPMOVSXBW (BX)(AX*1), Y1
	VPMADDWD  (SI)(AX*2), Y1, Y1
	VPADDD    Y1, Y0, Y0
	ADDQ      $16, AX
	CMPQ      AX, DX
	JLT       step

	ADDQ         DX, BX
	VEXTRACTI128 $1, Y0, X1
	VPADDD       X1, X0, X0
	VPSHUFD      $0x4E, X0, X1
	VPADDD       X1, X0, X0
	VPSHUFD      $0xB1, X0, X1
	VPADDD       X1, X0, X0
	VMOVD        X0, (DI)
	ADDQ         $4, DI
	DECQ         CX
	JNZ          row
	VZEROUPPER
	RET
