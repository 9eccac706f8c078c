package config

import "github.com/goccy/go-yaml/token"

// tooDeep returns the first token that is nested deeper than maxDepth, or nil. It looks at what can
// open a level: brackets, the columns of block entries, and marks that stand before a value (anchors,
// tags, explicit keys), which the parser reads recursively.
func tooDeep(tokens token.Tokens) *token.Token {
	var columns []int // of the block entries that enclose the token
	brackets, marks := 0, 0
	for _, t := range tokens {
		switch t.Type {
		case token.SequenceStartType, token.MappingStartType:
			brackets++
		case token.SequenceEndType, token.MappingEndType:
			brackets = max(0, brackets-1)
		case token.AnchorType, token.TagType, token.MappingKeyType, token.AliasType:
			marks++
		default:
			marks = 0
		}
		if brackets == 0 {
			at := t.Position.Column
			for len(columns) > 0 && columns[len(columns)-1] >= at {
				columns = columns[:len(columns)-1]
			}
			columns = append(columns, at)
		}
		if brackets > maxDepth || marks > maxDepth || len(columns) > 4*maxDepth {
			return t
		}
	}
	return nil
}
