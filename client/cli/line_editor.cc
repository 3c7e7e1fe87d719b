#include "client/cli/line_editor.h"

#include <histedit.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <clocale>
#include <cstdio>
#include <cstdlib>
#include <cwchar>

namespace linnet::client {

class LineEditor::Impl {
 public:
  Impl(const std::string& file, int stop_event)
      : file_(file), stop_event_(stop_event), history_(history_init()) {
    // libedit moves by characters of the locale; the C locale would reject an umlaut.
    setlocale(LC_CTYPE, "");
    if (MB_CUR_MAX == 1) setlocale(LC_CTYPE, "C.UTF-8");
    editor_ = el_init("linnet", stdin, stdout, stderr);
    HistEvent event;
    history(history_, &event, H_SETSIZE, 1000);
    history(history_, &event, H_SETUNIQUE, 1);
    if (!file_.empty()) history(history_, &event, H_LOAD, file_.c_str());
    el_set(editor_, EL_CLIENTDATA, this);
    el_set(editor_, EL_PROMPT, &Prompt);
    el_set(editor_, EL_EDITOR, "emacs");
    el_set(editor_, EL_HIST, history, history_);
    el_set(editor_, EL_ADDFN, "linnet-interrupt", "Forget the line", &Interrupt);
    el_set(editor_, EL_BIND, "^C", "linnet-interrupt", nullptr);
    el_set(editor_, EL_BIND, "^R", "em-inc-search-prev", nullptr);
    el_set(editor_, EL_SETTY, "-d", "-isig", nullptr);
    // Keep the terminal in raw mode between two lines as well: if the terminal itself took a Ctrl-D
    // as the end of a line, the next Read would not see it.
    el_set(editor_, EL_SETTY, "-x", "-icanon", "-echo", nullptr);
    el_set(editor_, EL_GETCFN, &ReadCharacter);
    el_source(editor_, nullptr);
  }
  ~Impl() {
    if (!file_.empty()) {
      const mode_t before = umask(077);
      HistEvent event;
      history(history_, &event, H_SAVE, file_.c_str());
      umask(before);
    }
    el_end(editor_);
    history_end(history_);
  }

  Got Read(const std::string& prompt, std::string* line) {
    prompt_ = prompt;
    interrupted_ = false;
    int count = 0;
    const char* typed = el_gets(editor_, &count);
    if (interrupted_) {
      std::fputs("^C\n", stdout);
      std::fflush(stdout);
      return Got::kInterrupt;
    }
    if (typed == nullptr || count <= 0) {
      std::fputs("\n", stdout);
      std::fflush(stdout);
      return Got::kEnd;
    }
    line->assign(typed, count);
    if (!line->empty() && line->back() == '\n') line->pop_back();
    if (line->find_first_not_of(" \t") != std::string::npos) {
      HistEvent event;
      history(history_, &event, H_ENTER, line->c_str());
    }
    return Got::kLine;
  }

 private:
  static Impl& Of(EditLine* editor) {
    void* self = nullptr;
    el_get(editor, EL_CLIENTDATA, &self);
    return *static_cast<Impl*>(self);
  }
  static char* Prompt(EditLine* editor) { return Of(editor).prompt_.data(); }
  // Replaces libedit's own function, which only a key can wake.
  static int ReadCharacter(EditLine* editor, wchar_t* character) {
    Impl& self = Of(editor);
    mbstate_t state = {};
    while (true) {
      pollfd files[] = {{STDIN_FILENO, POLLIN, 0}, {self.stop_event_, POLLIN, 0}};
      if (poll(files, 2, -1) < 0) return -1;
      if (files[1].revents != 0) {
        self.interrupted_ = true;
        return -1;
      }
      char byte = 0;
      const ssize_t count = read(STDIN_FILENO, &byte, 1);
      if (count <= 0) return static_cast<int>(count);
      const size_t used = mbrtowc(character, &byte, 1, &state);
      if (used == static_cast<size_t>(-1)) state = {};  // no character: the key is lost
      if (used <= 1) return 1;
    }
  }
  static unsigned char Interrupt(EditLine* editor, int) {
    Of(editor).interrupted_ = true;
    return CC_NEWLINE;
  }

  const std::string file_;
  const int stop_event_;
  History* const history_;
  EditLine* editor_ = nullptr;
  std::string prompt_;
  bool interrupted_ = false;
};

LineEditor::LineEditor(const std::string& history, int stop_event)
    : impl_(std::make_unique<Impl>(history, stop_event)) {}
LineEditor::~LineEditor() = default;

LineReader::Got LineEditor::Read(const std::string& prompt, std::string* line) {
  return impl_->Read(prompt, line);
}

}  // namespace linnet::client
