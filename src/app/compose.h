// Everything that serve and generate run on, put together from the options.
#pragma once

#include <memory>
#include <string>

#include "app/loaded_model.h"
#include "app/options.h"
#include "base/clock.h"
#include "engine/engine.h"
#include "server/server_config.h"
#include "text/chat_format.h"
#include "text/tokenizer.h"

namespace winnow::app {

// Members are destroyed in reverse: the engine's thread ends before the model goes.
struct Composition {
  std::unique_ptr<text::Tokenizer> tokenizer;
  std::unique_ptr<text::ChatFormat> chat_format;  // nullptr: no way to format chats
  std::unique_ptr<LoadedModel> model;
  std::unique_ptr<engine::Engine> engine;
  std::string tokenizer_path;
};

// Throws Error with one clear line.
std::unique_ptr<Composition> compose(const ServeOptions& options, const Clock& clock);

// launch_arguments is left empty.
server::ServerConfig server_config(const ServeOptions& options, const Composition& composition);

}  // namespace winnow::app
