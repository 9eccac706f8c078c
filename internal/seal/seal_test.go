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

var place = seal.Place{Pipeline: "0b6f51aa93c2d701", Key: "shards/0/published.json"}

// decode is how a strict reader decodes a document.
func decode(data []byte) (document, bool, error) {
	body, sealed, err := seal.Open(data, place)
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
	data, err := seal.JSON(want, place)
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
	data, err := seal.JSON(document{2, "catalog"}, place)
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
		body, sealed, err := seal.Open([]byte(plain), place)
		if err != nil || sealed || string(body) != plain {
			t.Errorf("%q: %q, %t, %v", plain, body, sealed, err)
		}
	}
}

func TestWrongChecksumIsNamed(t *testing.T) {
	data, err := seal.JSON(document{1, "x"}, place)
	if err != nil {
		t.Fatal(err)
	}
	_, sealed, err := seal.Open(bytes.Replace(data, []byte(`"x"`), []byte(`"y"`), 1), place)
	if !sealed || !errors.Is(err, seal.ErrBroken) || !strings.Contains(err.Error(), "crc32c:") {
		t.Errorf("%t, %v", sealed, err)
	}
}

// A whole document is refused in the place of another, and accepted where either does not know the place.
func TestDocumentIsRefusedInAnotherPlace(t *testing.T) {
	nobodys := seal.Place{Key: place.Key}
	others := []seal.Place{{Pipeline: place.Pipeline, Key: "shards/1/published.json"},
		{Pipeline: "f00dcafe00000000", Key: place.Key}}
	for _, c := range []struct {
		written, read seal.Place
		refused       bool
	}{
		{place, place, false}, {place, nobodys, false}, {nobodys, place, false}, {place, seal.Place{}, false},
		{place, others[0], true}, {place, others[1], true}, {others[1], place, true}, {nobodys, others[0], true},
	} {
		data, err := seal.JSON(document{1, "x"}, c.written)
		if err != nil {
			t.Fatal(err)
		}
		if said := seal.PlaceOf(data); said != c.written {
			t.Errorf("sealed for %v, says %v", c.written, said)
		}
		body, sealed, err := seal.Open(data, c.read)
		if refused := errors.Is(err, seal.ErrBroken); !sealed || refused != c.refused || refused != (err != nil) {
			t.Errorf("%v in the place of %v: %q, %t, %v", c.written, c.read, body, sealed, err)
		}
		if c.refused && !strings.Contains(err.Error(), c.written.String()) {
			t.Errorf("%v does not say what it is: %v", c.written, err)
		}
	}
}

// Earlier releases wrote documents that do not say where they are stored.
func TestDocumentOfAnEarlierReleaseIsRead(t *testing.T) {
	body, sealed, err := seal.Open([]byte("{\n  \"name\": \"x\",\n  \"checksum\": \"crc32c:1cee8254\"\n}\n"), place)
	if err != nil || !sealed || string(body) != "{\n  \"name\": \"x\"\n}\n" {
		t.Errorf("%q, %t, %v", body, sealed, err)
	}
}

func TestOnlyObjectsAreSealed(t *testing.T) {
	for _, v := range []any{1, "x", []int{1}, struct{}{}} {
		if data, err := seal.JSON(v, place); err == nil {
			t.Errorf("%v sealed as %q", v, data)
		}
	}
}
