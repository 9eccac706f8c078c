package seal_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"giantstream/internal/seal"
)

type document struct {
	Format int    `json:"format"`
	Name   string `json:"name"`
}

// decode is how a strict reader decodes a document.
func decode(data []byte) (document, bool, error) {
	body, sealed, err := seal.Open(data)
	if err != nil {
		return document{}, sealed, err
	}
	var d document
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.DisallowUnknownFields()
	return d, sealed, dec.Decode(&d)
}

func TestSealedDocumentReadsBack(t *testing.T) {
	want := document{2, `"} a name, "checksum": "crc32c:00000000"`}
	data, err := seal.JSON(want)
	if err != nil {
		t.Fatal(err)
	}
	got, sealed, err := decode(data)
	if err != nil || !sealed || got != want {
		t.Errorf("got %+v, sealed %t, %v", got, sealed, err)
	}
	var plain map[string]any // of a reader that knows no seals
	if err := json.Unmarshal(data, &plain); err != nil || plain["name"] != want.Name || plain["checksum"] == nil {
		t.Errorf("%v, %v", plain, err)
	}
}

// No flip of a single bit, and no truncation, passes a strict reader as a sealed document, or as one
// without a seal.
func TestEveryFlippedBitIsNoticed(t *testing.T) {
	data, err := seal.JSON(document{2, "catalog"})
	if err != nil {
		t.Fatal(err)
	}
	for bit := range 8 * len(data) {
		bad := bytes.Clone(data)
		bad[bit/8] ^= 1 << (bit % 8)
		if d, _, err := decode(bad); err == nil {
			t.Errorf("bit %d of byte %d flipped: %q reads as %+v", bit%8, bit/8, bad, d)
		}
	}
	for n := range data {
		if _, _, err := decode(data[:n]); err == nil {
			t.Errorf("the first %d bytes read as a document", n)
		}
	}
}

func TestDocumentWithoutSealIsReturnedAsItIs(t *testing.T) {
	for _, plain := range []string{"", "{}", "}\n", `{"checksum": "crc32c:12345678"}`, "\"\n}\n"} {
		body, sealed, err := seal.Open([]byte(plain))
		if err != nil || sealed || string(body) != plain {
			t.Errorf("%q: %q, %t, %v", plain, body, sealed, err)
		}
	}
}

func TestWrongChecksumIsNamed(t *testing.T) {
	data, err := seal.JSON(document{1, "x"})
	if err != nil {
		t.Fatal(err)
	}
	_, sealed, err := seal.Open(bytes.Replace(data, []byte(`"x"`), []byte(`"y"`), 1))
	if !sealed || !errors.Is(err, seal.ErrBroken) || !strings.Contains(err.Error(), "crc32c:") {
		t.Errorf("%t, %v", sealed, err)
	}
}

func TestOnlyObjectsAreSealed(t *testing.T) {
	for _, v := range []any{1, "x", []int{1}, struct{}{}} {
		if data, err := seal.JSON(v); err == nil {
			t.Errorf("%v sealed as %q", v, data)
		}
	}
}
