// Package artifact frames the files that a fit leaves behind: vectorizer,
// projection, label tree.
//
// Every artifact is
//
//	magic    8 bytes, ASCII, names the kind
//	version  uint32
//	fields   as the kind's page in docs/format says
//	crc      uint32, CRC-32C of all bytes before it
//
// little-endian throughout; arrays and strings are a uint64 length followed
// by the elements. A Writer and a Reader carry the first error along, so
// codecs read as a list of fields and check once, at Close.
//
// A Reader takes nothing on trust: lengths are held against the caller's
// limit, and memory grows with the bytes that really arrive, so a corrupt
// length costs no more than the file's own size. What it returned is only to
// be used after Close said that the checksum holds.
package artifact
