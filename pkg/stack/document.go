package stack

// object is an object of a template. It is rendered with its keys in order.
type object = map[string]any

// ref refers to a resource or a parameter.
func ref(name string) object { return object{"Ref": name} }

// getAtt refers to an attribute of a resource.
func getAtt(resource, attribute string) object {
	return object{"Fn::GetAtt": []any{resource, attribute}}
}

// sub is a text with ${...} in it.
func sub(text string) object { return object{"Fn::Sub": text} }

// resource is one of a template.
func resource(kind string, properties object) object {
	return object{"Type": kind, "Properties": properties}
}
