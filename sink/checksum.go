package sink

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"hash/crc32"
)

// Checksum is what a document says of the bytes of an object that it names. It identifies them: no other object has
// their SHA-256.
type Checksum struct {
	SHA256 SHA256 `json:"sha256,omitzero"`
	// CRC32C (Castagnoli) is what documents of older releases have in its place.
	CRC32C uint32 `json:"crc32c,omitempty"`
}

// SHA256 is a SHA-256. The zero value stands for none. Its text is hexadecimal.
type SHA256 [sha256.Size]byte

// String implements fmt.Stringer.
func (s SHA256) String() string { return hex.EncodeToString(s[:]) }

// MarshalText implements encoding.TextMarshaler.
func (s SHA256) MarshalText() ([]byte, error) { return hex.AppendEncode(nil, s[:]), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (s *SHA256) UnmarshalText(text []byte) error {
	if len(text) != hex.EncodedLen(len(s)) {
		return fmt.Errorf("a SHA-256 of %d digits, want %d", len(text), hex.EncodedLen(len(s)))
	}
	_, err := hex.Decode(s[:], text)
	return err
}

// ChecksumOf returns the checksum of data.
func ChecksumOf(data []byte) Checksum { return Checksum{SHA256: sha256.Sum256(data)} }

// NewHash returns the hash for the checksum of a new object: ChecksumFrom takes it once all bytes are written.
func NewHash() hash.Hash { return sha256.New() }

// ChecksumFrom returns the checksum of the bytes that were written to a hash of NewHash.
func ChecksumFrom(h hash.Hash) Checksum { return Checksum{SHA256: SHA256(h.Sum(nil))} }

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// trailing is the CRC-32C of any bytes that end in their own CRC-32C, little-endian.
const trailing = 0x48674BC7

// Identifies reports whether the checksum tells an object from others of its kind. An older release's does not where
// the object ends in its own CRC-32C: every whole object of the kind has the same one.
func (c Checksum) Identifies() bool { return c.SHA256 != SHA256{} || c.CRC32C != trailing }

// hash returns the hash that compare takes.
func (c Checksum) hash() hash.Hash {
	if c.SHA256 != (SHA256{}) {
		return sha256.New()
	}
	return crc32.New(castagnoli)
}

// compare returns ErrDamaged if the bytes that were written to h are not those of the checksum.
func (c Checksum) compare(key string, h hash.Hash) error {
	computed := Checksum{}
	if sum := h.Sum(nil); len(sum) == len(c.SHA256) {
		computed.SHA256 = SHA256(sum)
	} else {
		computed.CRC32C = h.(hash.Hash32).Sum32()
	}
	if computed != c {
		return fmt.Errorf("%w: the bytes of %s have the checksum %s, %s was stored", ErrDamaged, key,
			computed.brief(), c.brief())
	}
	return nil
}

// brief names the checksum for people, a SHA-256 by its first digits.
func (c Checksum) brief() string {
	if c.SHA256 != (SHA256{}) {
		return fmt.Sprintf("sha256:%.12s…", c.SHA256)
	}
	return fmt.Sprintf("crc32c:%08x", c.CRC32C)
}
