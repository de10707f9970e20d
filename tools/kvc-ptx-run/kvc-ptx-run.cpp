//===- kvc-ptx-run.cpp - Runs one kernel of a PTX file on the simulator ---===//
#include "tools/kvc-ptx-run/Arguments.h"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <cstdio>
#include <fstream>
#include <iostream>
#include <iterator>
#include <sstream>

using namespace kvc;
using namespace kvc::sim;

namespace {

struct Choices {
  std::string File, Kernel;
  std::string Grid = "1", Block;
  uint32_t Shared = 0;
  std::vector<std::string> Arguments;
  uint64_t Seed = 0;
  uint64_t Limit = LaunchOptions().InstructionLimit;
  int Threads = 0;
  bool List = false, Meter = false, Json = false, NoChecks = false;
};

constexpr int Failed = 1, WrongCommandLine = 2;

} // namespace

static int fail(const std::string &what) {
  std::fprintf(stderr, "kvc-ptx-run: %s\n", what.c_str());
  return Failed;
}

static bool parseDim(const std::string &text, Dim3 &dim) {
  uint32_t *extents[] = {&dim.X, &dim.Y, &dim.Z};
  size_t start = 0;
  for (uint32_t *extent : extents) {
    size_t end = std::min(text.find(',', start), text.size());
    uint64_t value = 0;
    if (!parseScalar(text.substr(start, end - start), Element::U32, value) ||
        value == 0)
      return false;
    *extent = uint32_t(value);
    if (end == text.size())
      return true;
    start = end + 1;
  }
  return false;
}

static std::string describe(const KernelInfo &kernel) {
  std::ostringstream text;
  text << kernel.Name << ": " << kernel.Parameters.size() << " parameters of";
  for (const Parameter &parameter : kernel.Parameters)
    text << ' ' << parameter.Bytes;
  text << " bytes, " << kernel.Instructions << " instructions, "
       << kernel.Registers << " virtual registers, " << kernel.StaticShared
       << " bytes static shared, " << kernel.Local << " bytes local";
  if (kernel.Required.X != 0)
    text << ", .reqntid " << kernel.Required.X << ',' << kernel.Required.Y
         << ',' << kernel.Required.Z;
  if (kernel.MaxThreads != 0)
    text << ", at most " << kernel.MaxThreads << " threads";
  return text.str();
}

static nlohmann::ordered_json toJson(const Meter &meter) {
  nlohmann::ordered_json json;
  json["ctas"] = meter.Ctas;
  json["warp_instructions"] = meter.WarpInstructions;
  json["nanoseconds"] = meter.Nanoseconds;
  json["load_bytes"] = meter.LoadBytes;
  json["store_bytes"] = meter.StoreBytes;
  json["load_sectors"] = meter.LoadSectors;
  json["store_sectors"] = meter.StoreSectors;
  json["loads"] = meter.Loads;
  json["loads_128"] = meter.Loads128;
  json["stores"] = meter.Stores;
  json["shared_requests"] = meter.SharedRequests;
  json["shared_conflicts"] = meter.SharedConflicts;
  json["mma"] = meter.Mma;
  json["barriers"] = meter.Barriers;
  json["atomics"] = meter.Atomics;
  json["opcodes"] = meter.ByOpcode;
  json["sectors_by_allocation"] = meter.SectorsByAllocation;
  return json;
}

static void printMeter(const Meter &meter) {
  nlohmann::ordered_json json = toJson(meter);
  for (const auto &[name, value] : json.items()) {
    if (value.is_object())
      for (const auto &[key, count] : value.items())
        std::printf("%s %s: %s\n", name.c_str(), key.c_str(),
                    count.dump().c_str());
    else
      std::printf("%s: %s\n", name.c_str(), value.dump().c_str());
  }
}

/// Parameters in their places, buffers in device memory.
static bool place(Machine &machine, const KernelInfo &kernel,
                  std::vector<Argument> &arguments, std::vector<uint8_t> &block,
                  std::string &error) {
  if (arguments.size() != kernel.Parameters.size()) {
    error = "kernel '" + kernel.Name + "' has " +
            std::to_string(kernel.Parameters.size()) + " parameters, " +
            std::to_string(arguments.size()) + " --arg were given";
    return false;
  }
  block.assign(kernel.ParameterBytes, 0);
  for (size_t i = 0; i != arguments.size(); ++i) {
    Argument &argument = arguments[i];
    const Parameter &parameter = kernel.Parameters[i];
    unsigned bytes = argument.IsBuffer ? 8 : bytesOf(argument.Type);
    if (parameter.Bytes != bytes) {
      error = "--arg '" + argument.Text + "' has " + std::to_string(bytes) +
              " bytes, parameter " + std::to_string(i) + " ('" +
              parameter.Name + "') has " + std::to_string(parameter.Bytes);
      return false;
    }
    uint64_t value = argument.Scalar;
    if (argument.IsBuffer) {
      value = machine.allocate("argument " + std::to_string(i), argument.Bytes,
                               argument.ReadOnly);
      argument.Address = value;
      if (value == 0) {
        error = "--arg '" + argument.Text + "': no memory for " +
                std::to_string(argument.Bytes) + " bytes";
        return false;
      }
      if (!argument.Data.empty())
        machine.write(value, argument.Data.data(), argument.Bytes);
    }
    std::memcpy(&block[parameter.Offset], &value, bytes);
  }
  return true;
}

/// What the run left in buffers that the command line asked to see.
static bool show(const Machine &machine, std::vector<Argument> &arguments,
                 nlohmann::ordered_json *json, std::string &error) {
  constexpr uint64_t mostPrinted = 64;
  for (size_t i = 0; i != arguments.size(); ++i) {
    Argument &argument = arguments[i];
    if (!argument.Shown)
      continue;
    unsigned bytes = bytesOf(argument.Type);
    argument.Data.resize(argument.Bytes);
    machine.read(argument.Address, argument.Data.data(), argument.Bytes);
    uint64_t unwritten = 0;
    for (uint64_t at = 0; at != argument.Bytes; at += bytes)
      unwritten += !machine.initialised(argument.Address + at, bytes);
    if (json)
      (*json)["unwritten"]["argument " + std::to_string(i)] = unwritten;
    if (!argument.Path.empty()) {
      if (!writeNpy(argument.Path, toNpy(argument), error))
        return false;
      if (unwritten != 0)
        std::fprintf(stderr,
                     "kvc-ptx-run: warning: %s: %llu of %llu elements were "
                     "never written\n",
                     argument.Path.c_str(),
                     static_cast<unsigned long long>(unwritten),
                     static_cast<unsigned long long>(argument.Bytes / bytes));
      continue;
    }
    if (json)
      continue;
    std::printf("argument %zu:", i);
    for (uint64_t at = 0; at != argument.Bytes; at += bytes) {
      if (at / bytes == mostPrinted) {
        std::printf(" ... (%llu elements; give a FILE.npy for all)",
                    static_cast<unsigned long long>(argument.Bytes / bytes));
        break;
      }
      if (machine.initialised(argument.Address + at, bytes))
        std::printf(" %s",
                    elementText(&argument.Data[at], argument.Type).c_str());
      else
        std::printf(" unwritten");
    }
    std::printf("\n");
  }
  return true;
}

static int run(const Choices &choices) {
  std::ifstream file(choices.File, std::ios::binary);
  if (!file)
    return fail(choices.File + ": cannot read");
  std::string text((std::istreambuf_iterator<char>(file)),
                   std::istreambuf_iterator<char>());
  std::string error;
  auto module = Module::parse(text, error);
  if (!module)
    return fail(choices.File + ": " + error);
  if (choices.List) {
    for (const KernelInfo *kernel : module->kernels())
      std::printf("%s\n", describe(*kernel).c_str());
    return 0;
  }
  std::string name = choices.Kernel;
  if (name.empty()) {
    if (module->kernels().size() != 1)
      return fail(choices.File + ": has " +
                  std::to_string(module->kernels().size()) +
                  " kernels: --kernel has to name one (--list lists them)");
    name = module->kernels().front()->Name;
  }
  const KernelInfo *kernel = module->find(name);
  if (!kernel)
    return fail(choices.File + ": has no kernel '" + name +
                "' (--list lists them)");

  LaunchConfig config;
  config.DynamicShared = choices.Shared;
  if (!parseDim(choices.Grid, config.Grid))
    return fail("--grid '" + choices.Grid + "': not X, X,Y or X,Y,Z from 1");
  if (!choices.Block.empty()) {
    if (!parseDim(choices.Block, config.Block))
      return fail("--block '" + choices.Block +
                  "': not X, X,Y or X,Y,Z from 1");
  } else if (kernel->Required.X != 0) {
    config.Block = kernel->Required;
  } else {
    return fail("--block is needed: kernel '" + name + "' has no .reqntid");
  }

  std::vector<Argument> arguments(choices.Arguments.size());
  for (size_t i = 0; i != arguments.size(); ++i)
    if (!parseArgument(choices.Arguments[i], arguments[i], error))
      return fail(error);
  Machine machine(choices.Threads);
  std::vector<uint8_t> block;
  if (!place(machine, *kernel, arguments, block, error))
    return fail(error);
  LaunchOptions options;
  options.Seed = choices.Seed;
  options.Checks = !choices.NoChecks;
  options.InstructionLimit = choices.Limit;
  if (!machine.launch(*module, name, config, block.data(), block.size(),
                      options, error))
    return fail(choices.File + ": " + error);

  nlohmann::ordered_json json;
  if (!show(machine, arguments, choices.Json ? &json : nullptr, error))
    return fail(error);
  const Meter &meter = machine.meters().at(name);
  if (choices.Json) {
    json["kernel"] = name;
    json["meter"] = toJson(meter);
    std::cout << json.dump(2) << '\n';
  } else if (choices.Meter) {
    printMeter(meter);
  }
  return 0;
}

int main(int argc, char **argv) {
  Choices choices;
  CLI::App app("kvc-ptx-run runs one kernel of a PTX file on kvc's simulator, "
               "which checks it and counts what it does. No GPU is needed.");
  app.add_option("FILE", choices.File, "PTX text")->required();
  app.add_option("--kernel", choices.Kernel,
                 "Its name; a lone kernel needs none");
  app.add_option("--grid", choices.Grid, "CTAs: X, X,Y or X,Y,Z")
      ->capture_default_str();
  app.add_option("--block", choices.Block,
                 "Threads of a CTA, likewise; .reqntid's if it is not given");
  app.add_option("--shared", choices.Shared, "Bytes of dynamic shared memory");
  app.add_option("--arg", choices.Arguments, ArgumentHelp)
      ->allow_extra_args(false);
  app.add_option("--seed", choices.Seed,
                 "Order of CTAs and warps; 0: ascending");
  app.add_option("--limit", choices.Limit,
                 "Warp instructions of a CTA that make an endless loop");
  app.add_option("--threads", choices.Threads, "Host threads; 0: one a core")
      ->check(CLI::Range(0, 256));
  app.add_flag("--list", choices.List, "Lists the file's kernels");
  app.add_flag("--meter", choices.Meter, "Prints what the kernel did");
  app.add_flag("--json", choices.Json,
               "Prints that, and nothing else, as JSON");
  app.add_flag("--no-checks", choices.NoChecks,
               "No checks of races, uninitialised reads, asynchronous copies "
               "and griddepcontrol's order");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError &wrong) {
    if (wrong.get_exit_code() == 0)
      return app.exit(wrong);
    std::fprintf(stderr, "kvc-ptx-run: %s\n", wrong.what());
    return WrongCommandLine;
  }
  return run(choices);
}
