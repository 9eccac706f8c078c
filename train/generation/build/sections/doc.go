// Package sections is how the tasks of a build lay out the objects that they exchange. An object has numbered sections,
// each of which is read by itself and verified as it is read:
//
//	the sections, one after the other
//	for each: its bytes u64, CRC-32C u32
//	number of sections u32, CRC-32C of the table u32, "GSSECT1\n"
//
// A Writer deals records out to sections in any order; Open returns a Reader. Most sections are for one partition of
// the nodes or for one block of them. Decoder and the functions beside it read and write the fields of records.
package sections
