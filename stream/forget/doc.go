// Package forget looks for what is left of items that are to be forgotten.
//
// A Scanner is given ids and texts. It opens every object of a store as what its bytes say that it is: the columns
// of Parquet, decompressed, with what its footer says of them; the keys and values of the tables of a checkpoint;
// the strings of JSON; the n-grams of a vocabulary; what a gzip or a Zstandard frame holds. Whatever else there is, it
// searches byte by byte and calls raw. It does the same with older versions of objects, with the records of topics, and
// with files on this machine, where it also opens the compressed batches of an embedded broker.
//
// An id is found where it is a value of its own: a node id, a label, a key. In prose and in bytes of unknown structure,
// it is found where no letter, digit, hyphen or underscore is beside it. The text of one node may mention the id of
// another, which is the first one's text: such mentions are passed over. Texts, and lines of texts, are found wherever
// they are part of something.
package forget
