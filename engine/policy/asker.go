package policy

// What the verdicts by node ask of a session beside its rows: see asker and surroundings.

// askedTogether counts that a row was asked of some nodes at once.
func (s *Session) askedTogether(r *Rule, nodes int) { s.evaluated[r.Number] += uint64(nodes) }

// errors is how many there were so far.
func (s *Session) errors() uint64 { return s.erring }

func (s *Session) topologyMoves() uint64 { return s.Topology.Moves() }

func (s *Session) chosenFrom(sizes []int32) { s.Sizes = sizes }
