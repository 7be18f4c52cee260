#include "testing/made_model.h"

#include "testing/program.h"
#include "testing/temp_folder.h"

namespace winnow::testing {

const std::string& made_model() {
  static const TempFolder folder;
  static const std::string path = [] {
    const ProgramResult made =
        run_program("python3 " WINNOW_SOURCE_DIR "/tools/make_model.py --output " + folder.path());
    return made.exit_code == 0 ? folder.path() : std::string();
  }();
  return path;
}

}  // namespace winnow::testing
