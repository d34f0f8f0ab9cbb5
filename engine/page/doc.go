// Package page contains the style and the components of the pages that Celsius shows in a browser. They are embedded as they are written:
// there is no build step.
//
//	style.css      the style: light and dark, colours of queues and states, the scale of heat
//	components.js  bars, curves over time, heat maps, trees and lists, as functions from data to elements; each documents its data
//
// A page in a single file contains both inline. Other pages serve them as files. Both set data as text, and work under a
// Content-Security-Policy that allows neither inline scripts nor inline styles.
package page
