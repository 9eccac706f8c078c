package stage

import (
	"encoding/binary"
	"os"
	"path/filepath"

	"giantstream/featurize/sparse"
)

// ReadMatrix reads what save of cmd/bench/featurize/pecos_stage.py wrote.
func ReadMatrix(work, name string) (*sparse.Matrix, error) {
	at := filepath.Join(work, name)
	shape, err := ReadArray[int64](at + ".shape")
	if err != nil {
		return nil, err
	}
	m := &sparse.Matrix{Rows: int(shape[0]), Cols: int(shape[1])}
	if m.Start, err = ReadArray[int64](at + ".start"); err != nil {
		return nil, err
	}
	if m.Index, err = ReadArray[int32](at + ".index"); err != nil {
		return nil, err
	}
	m.Value, err = ReadArray[float32](at + ".value")
	return m, err
}

// ReadArray reads a file of little-endian numbers.
func ReadArray[T int32 | int64 | float32](path string) ([]T, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var one T
	v := make([]T, len(b)/binary.Size(one))
	_, err = binary.Decode(b, binary.LittleEndian, v)
	return v, err
}
