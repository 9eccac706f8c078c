// Package safetensors reads and writes the safetensors format, so that what
// is trained here opens in Python with no code of ours, and checkpoints made
// there can be read here.
//
// A file is a little-endian 64-bit header length, a JSON header naming each tensor's type, shape
// and byte range, and the bytes of the tensors, without gaps. F32, BF16 and I32 are written; F32, F16 and
// BF16 (as float32) and I32 are read; files holding other types open, and only reading such a
// tensor fails. OpenModel reads a model directory, whose tensors may be spread over several files.
// The format has no checksum, so artifacts that use it store one beside the file
// (docs/format/encoder.md).
//
// The header is not trusted: its length, names, shapes and ranges are checked
// against the size of the file before anything is allocated.
//
// Format: https://github.com/huggingface/safetensors#format
package safetensors
