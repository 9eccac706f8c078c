// Package artifact frames the files that a fit writes: vectorizer, projection, label tree.
//
// Every artifact is
//
//	magic    8 bytes, ASCII, names the kind
//	version  uint32
//	fields   as the page of the kind in docs/format says
//	crc      uint32, CRC-32C of all bytes before it
//
// Numbers are little-endian. Arrays and strings are a uint64 length followed by the elements. A
// Writer and a Reader keep the first error, so codecs read as a list of fields and check once, at
// Close.
//
// A Reader trusts nothing. It checks lengths against the caller's limit, and memory grows with the
// bytes that really arrive, so a corrupt length costs no more than the file's own size. Values that
// it returned may be used only after Close has confirmed the checksum.
package artifact
