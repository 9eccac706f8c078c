package shard

import "bytes"

// IDsOf returns the ids that a key of a state names: none, one, or an owner and a far end.
func IDsOf(key []byte) [][]byte {
	if len(key) == 0 {
		return nil
	}
	switch key[0] {
	case spaceHeader, spaceText:
		return [][]byte{key[1:]}
	case spaceAdjacency:
		owner, err := ownerOf(key)
		if err != nil {
			return nil
		}
		return [][]byte{owner, bytes.TrimPrefix(key, adjacencyPrefixOf(key))}
	case spaceDirty:
		if len(key) > dirtyKeyPrefix {
			return [][]byte{key[dirtyKeyPrefix:]}
		}
	}
	return nil
}

// TextOf returns the text that an entry of a state has, nil for an entry that is not a node's text.
func TextOf(key, value []byte) []byte {
	if len(key) == 0 || key[0] != spaceText {
		return nil
	}
	text, _, err := decodeText(value)
	if err != nil {
		return value
	}
	return []byte(text)
}
