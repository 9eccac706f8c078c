package vectordb

// Attribute is what tables have of nodes beside their vectors, such as a price.
type Attribute struct {
	Name string
	Type AttributeType
}

// AttributeType says what the values of an attribute are.
type AttributeType string

// The types of attributes, and what their values are in Record.Values.
const (
	Number  AttributeType = "number"  // float64
	Boolean AttributeType = "boolean" // bool
	String  AttributeType = "string"  // string
	Strings AttributeType = "strings" // []string
	Time    AttributeType = "time"    // time.Time, in whole microseconds
)
