//===- SlotChecker.h - An independent look at a schedule ------------------===//
#ifndef KVC_TEST_UNIT_SLOTCHECKER_H
#define KVC_TEST_UNIT_SLOTCHECKER_H

#include "dialect/KvcDialect.h"

#include <string>

/// What is wrong with a program's slots and barriers; empty if nothing is.
/// Runs the dispatches in order, layers three times, and knows of no analysis
/// that made them:
///  - every slot lies in its arena, aligned;
///  - what a dispatch reads was written, whole, and by nobody since in part;
///  - no two values that are still to be read share bytes;
///  - a dispatch that writes bytes it reads does so element by element;
///  - dispatches with no barrier in between touch no common bytes that one of
///    them writes.
std::string checkSlots(kvc::ProgramOp program);

#endif // KVC_TEST_UNIT_SLOTCHECKER_H
