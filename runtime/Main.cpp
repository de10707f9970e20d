#include "runtime/Program.h"

int main(int argc, char **argv) {
  return kvc::runProgram(kvc_program, argc, argv);
}
