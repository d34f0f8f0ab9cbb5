// Package page has the look and the components of the pages that Celsius shows in a browser, embedded as they are written: there is no
// build step.
//
//	style.css      the look: light and dark, colours of queues and states, the scale of heat
//	components.js  bars, curves over time, heat maps, trees and lists, as functions from data to elements; each says the shape of its data
//
// A page that one file is to hold has both inline, another serves them beside it. What they show is set as text, and both work under a
// Content-Security-Policy that allows neither inline scripts nor inline styles.
package page
