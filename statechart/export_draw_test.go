package statechart

// MaxLooks is the bound of DrawingLooks.
const MaxLooks = maxLooks

// DrawingLooks returns how often the drawing of a machine compared the place of a label
// with another thing.
func DrawingLooks(m *Machine) int { return layOut(m).looks }
