// Programs that tests start, read from, signal and wait for.
#pragma once

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <map>
#include <poll.h>
#include <regex>
#include <stdexcept>
#include <string>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

namespace par::test {

using Clock = std::chrono::steady_clock;
using Environment = std::map<std::string, std::string>;

/// The program that is one rank of a job, or starts all.
inline const std::string jobTool = PAR_TEST_BIN "/par-test-job";

inline double secondsSince(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

/// Seconds for what has no time of its own, however busy the machine is: only a job that hangs takes them.
inline constexpr double enough = 120;

/// A child process with its output. Killed by the destructor.
class Process {
public:
  Process(std::vector<std::string> arguments, Environment environment = {}) {
    int output[2], errors[2];
    if (pipe2(output, O_CLOEXEC) || pipe2(errors, O_CLOEXEC))
      std::abort();
    child = fork();
    if (child == 0) {
      dup2(output[1], 1);
      dup2(errors[1], 2);
      for (auto &[name, value] : environment)
        setenv(name.c_str(), value.c_str(), 1);
      std::vector<char *> argv;
      for (std::string &argument : arguments)
        argv.push_back(argument.data());
      argv.push_back(nullptr);
      execv(argv[0], argv.data());
      _exit(127);
    }
    close(output[1]);
    close(errors[1]);
    pipes[0] = output[0];
    pipes[1] = errors[0];
  }
  Process(const Process &) = delete;
  ~Process() {
    if (!ended)
      ::kill(child, SIGKILL);
    wait(5);
    close(pipes[0]);
    close(pipes[1]);
  }

  pid_t pid() const { return child; }
  const std::string &out() const { return texts[0]; }
  const std::string &errors() const { return texts[1]; }
  void signal(int number) const { ::kill(child, number); }

  /// Reads until `text` stands `times` times in the output.
  bool sees(const std::string &text, size_t times = 1) { return reads(texts[0], text, times, enough); }
  /// The same in the errors.
  bool says(const std::string &text, double seconds = enough) { return reads(texts[1], text, 1, seconds); }

  /// Waits for the end; the exit code, 1000 + the signal, or -1 after `seconds`.
  int wait(double seconds) {
    for (auto begin = Clock::now(); !ended; read(10)) {
      int status = 0;
      if (waitpid(child, &status, WNOHANG) == child) {
        ended = true;
        code = WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
      } else if (secondsSince(begin) > seconds) {
        return -1;
      }
    }
    while (read(0))
      ;
    return code;
  }

private:
  bool reads(const std::string &all, const std::string &text, size_t times, double seconds) {
    for (auto begin = Clock::now(); secondsSince(begin) < seconds;) {
      read(20);
      size_t found = 0;
      for (size_t at = all.find(text); at != std::string::npos; at = all.find(text, at + 1))
        ++found;
      if (found >= times)
        return true;
    }
    return false;
  }
  bool read(int milliseconds) {
    pollfd polled[2] = {{pipes[0], POLLIN, 0}, {pipes[1], POLLIN, 0}};
    if (poll(polled, 2, milliseconds) <= 0)
      return false;
    bool any = false;
    for (int i = 0; i < 2; ++i) {
      char buffer[4096];
      ssize_t n = polled[i].revents & POLLIN ? ::read(pipes[i], buffer, sizeof buffer) : 0;
      if (n > 0)
        texts[i].append(buffer, size_t(n));
      any |= n > 0;
    }
    if (!any)
      usleep(1000 * unsigned(milliseconds));
    return any;
  }

  pid_t child = -1;
  int pipes[2];
  std::string texts[2];
  bool ended = false;
  int code = -1;
};

/// The pids that ranks of a par-test-job printed last, by rank. `format`: of the line.
inline std::map<int, pid_t> ranksOf(const std::string &out, const char *format = "rank %d pid %d") {
  std::map<int, pid_t> result;
  for (size_t at = out.find("rank "); at != std::string::npos; at = out.find("rank ", at + 1)) {
    int rank, pid;
    if (std::sscanf(out.c_str() + at, format, &rank, &pid) == 2)
      result[rank] = pid;
  }
  return result;
}

/// The word of each of these ranks that it has made its first step.
inline const std::string amongSteps = " runs as ";

/// The pid that a rank printed. Never 0, which to kill() means the test and all that runs it.
inline pid_t pidOfRank(const std::string &out, int rank) {
  std::map<int, pid_t> ranks = ranksOf(out);
  if (!ranks.contains(rank))
    throw std::runtime_error("rank " + std::to_string(rank) + " has not printed its pid: " + out);
  return ranks[rank];
}

/// Whether the process is there and no zombie.
inline bool alive(pid_t pid) {
  std::string path = "/proc/" + std::to_string(pid) + "/stat";
  FILE *file = std::fopen(path.c_str(), "r");
  if (!file)
    return false;
  char state = 'X';
  int read = std::fscanf(file, "%*d (%*[^)]) %c", &state);
  std::fclose(file);
  return read == 1 && state != 'Z' && state != 'X';
}

/// Waits until the process handles the signal.
inline bool handles(pid_t pid, int signal) {
  std::string path = "/proc/" + std::to_string(pid) + "/status";
  for (auto begin = Clock::now(); secondsSince(begin) < enough; usleep(10'000)) {
    // Until it runs a program of its own, it has the handlers of this one.
    std::error_code error;
    if (std::filesystem::equivalent("/proc/" + std::to_string(pid) + "/exe", "/proc/self/exe", error) || error)
      continue;
    std::ifstream file(path);
    for (std::string line; std::getline(file, line);)
      if (line.starts_with("SigCgt:") && std::stoull(line.substr(7), nullptr, 16) >> (signal - 1) & 1)
        return true;
  }
  return false;
}

/// How often a piece occurs in a text.
inline size_t count(const std::string &text, const std::string &piece) {
  size_t n = 0;
  for (size_t at = text.find(piece); at != text.npos; at = text.find(piece, at + 1))
    ++n;
  return n;
}

inline void expectMatch(const std::string &text, const std::string &pattern) {
  EXPECT_TRUE(std::regex_match(text, std::regex(pattern))) << text << "\ndoes not match\n" << pattern;
}

} // namespace par::test
