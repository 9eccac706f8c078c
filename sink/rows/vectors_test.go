package rows_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"testing"

	"giantstream/internal/vector"
	"giantstream/sink/rows"
)

// randomVectors returns rows with a vector of a length each, of 16 or of 32 bits a number.
func randomVectors(n, length int, bits int32) []rows.Vectors {
	rng := rand.New(rand.NewPCG(1, 2))
	out := make([]rows.Vectors, n)
	for i := range out {
		var data []byte
		for range length {
			x := float32(rng.NormFloat64())
			if bits == 16 {
				data = binary.LittleEndian.AppendUint16(data, vector.Half(x))
			} else {
				data = binary.LittleEndian.AppendUint32(data, math.Float32bits(x))
			}
		}
		out[i] = rows.Vectors{NodeID: fmt.Sprintf("node-%07d", i), Names: []string{"image"}, Bits: []int32{bits},
			Values: [][]byte{data}, EventTime: int64(i)}
	}
	return out
}

func vectorsFile(t testing.TB, all []rows.Vectors) []byte {
	t.Helper()
	var file bytes.Buffer
	w := rows.NodeVectors.NewWriter(&file)
	if err := w.Write(all); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return file.Bytes()
}

func TestVectorsAreReadAsWritten(t *testing.T) {
	all := append(randomVectors(50, 3, 16), rows.Vectors{NodeID: "of two", Input: 2, Names: []string{"image", "text"},
		Bits: []int32{32, 16}, Values: [][]byte{{0, 0, 0x80, 0x3f, 0, 0, 0, 0xc0}, {0, 0x3c}}, EventTime: 7},
		rows.Vectors{NodeID: "taken back", Input: 3, EventTime: 8})
	file := vectorsFile(t, all)
	var got []rows.Vectors
	for row, err := range rows.NodeVectors.ReadFrom(bytes.NewReader(file), int64(len(file)), rows.ReadOptions{}) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, row)
	}
	if !reflect.DeepEqual(got, all) {
		t.Errorf("got %+v\nwant %+v", got, all)
	}
	of := got[50]
	if a, b := of.Numbers(0), of.Numbers(1); !reflect.DeepEqual(a, []float32{1, -2}) ||
		!reflect.DeepEqual(b, []float32{1}) {
		t.Errorf("the numbers are %v and %v", a, b)
	}
}

// BenchmarkVectors says how many bytes a row with a vector of 512 numbers has in a file.
func BenchmarkVectors(b *testing.B) {
	for _, bits := range []int32{16, 32} {
		b.Run(fmt.Sprintf("float%d", bits), func(b *testing.B) {
			all := randomVectors(10_000, 512, bits)
			for b.Loop() {
				b.ReportMetric(float64(len(vectorsFile(b, all)))/float64(len(all)), "B/row")
			}
		})
	}
}
