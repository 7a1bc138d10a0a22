// llama.cpp's grammars as an engine of the comparison: see `walks.py` for how it is called and what it writes.
//
// llama.cpp's own grammar code, with a vocabulary that knows what each token spells and nothing else, since a real one is
// read from a model's file. A mask is `llama_grammar_apply_impl` over an array of all tokens, filled before the clock starts.

#include "llama-grammar.h"
#include "llama-impl.h"
#include "llama-vocab.h"

#include <chrono>
#include <cmath>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <iostream>
#include <sstream>

static struct {
    std::vector<std::string> pieces;
    llama_token eos = 0;
} tokens;

struct llama_vocab::impl {};

llama_vocab::llama_vocab() = default;
llama_vocab::~llama_vocab() = default;
bool llama_vocab::is_eog(llama_token id) const { return id == tokens.eos; }
const std::string & llama_vocab::token_to_piece(llama_token id) const { return tokens.pieces[id]; }
int32_t llama_vocab::tokenize(const char *, int32_t, llama_token *, int32_t, bool, bool) const { return 0; }

void llama_log_internal(ggml_log_level, const char * format, ...) {
    va_list args;
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
}

extern "C" void ggml_abort(const char * file, int line, const char *, ...) {
    fprintf(stderr, "%s:%d: llama.cpp gave up\n", file, line);
    abort();
}

using steady = std::chrono::steady_clock;

static int64_t timed(const std::function<void()> & work) {
    const auto begun = steady::now();
    work();
    return std::chrono::duration_cast<std::chrono::nanoseconds>(steady::now() - begun).count();
}

static std::string list(const std::vector<std::string> & items) {
    std::string joined;
    for (const auto & item : items) {
        joined += (joined.empty() ? "" : ", ") + item;
    }
    return "[" + joined + "]";
}

// Ones, FNV-1a and end of text of a mask.
static std::string digest(const std::vector<llama_token_data> & all) {
    std::vector<uint8_t> bytes((all.size() + 31) / 32 * 4);
    size_t ones = 0;
    bool ends = false;
    for (const auto & token : all) {
        if (std::isinf(token.logit)) {
            continue;
        }
        if (token.id == tokens.eos) {
            ends = true;
        } else {
            bytes[token.id / 8] |= 1 << (token.id % 8);
            ones++;
        }
    }
    uint64_t hash = 0xcbf29ce484222325;
    for (const uint8_t byte : bytes) {
        hash = (hash ^ byte) * 0x100000001b3;
    }
    char text[80];
    snprintf(text, sizeof text, "[%zu, \"%016llx\", %d]", ones, (unsigned long long) hash, ends);
    return text;
}

// Along a text: a mask before each token and one at the end.
static void walk(const char * kind, size_t number, const std::vector<llama_token> & text, const llama_grammar & compiled,
                 int64_t compile_time, bool look) {
    llama_grammar * grammar = nullptr;
    const int64_t start = timed([&] { grammar = llama_grammar_clone_impl(compiled); });
    std::vector<llama_token_data> all(tokens.pieces.size());
    std::vector<std::string> masks, commits, digests;
    std::string rejected = "null";
    for (size_t step = 0; step <= text.size(); step++) {
        for (size_t id = 0; id < all.size(); id++) {
            all[id] = { (llama_token) id, 0.0f, 0.0f };
        }
        llama_token_data_array array = { all.data(), all.size(), -1, false };
        masks.push_back(std::to_string(timed([&] { llama_grammar_apply_impl(*grammar, &array); })));
        if (look) {
            digests.push_back(digest(all));
        }
        if (step == text.size()) {
            break;
        }
        if (std::isinf(all[text[step]].logit)) {
            rejected = std::to_string(step);
            break;
        }
        commits.push_back(std::to_string(timed([&] { llama_grammar_accept_impl(*grammar, text[step]); })));
    }
    llama_grammar_free_impl(grammar);
    if (*kind) {
        printf("{\"kind\": \"%s\", \"text\": %zu, \"compile\": %lld, \"start\": %lld, \"masks\": %s, \"commits\": %s, "
               "\"rejected\": %s, \"digests\": %s}\n",
               kind, number, (long long) compile_time, (long long) start, list(masks).c_str(), list(commits).c_str(),
               rejected.c_str(), list(digests).c_str());
    }
}

static std::string read(const char * path) {
    std::ifstream file(path);
    std::stringstream text;
    text << file.rdbuf();
    return text.str();
}

int main(int argc, char ** argv) {
    if (argc != 7) {
        fprintf(stderr, "VOCAB GRAMMAR TRACES PASSES FRESH SECONDS\n");
        return 2;
    }
    const std::string source = read(argv[2]);
    std::vector<std::vector<llama_token>> traces;
    std::istringstream lines(read(argv[3]));
    for (std::string line; std::getline(lines, line);) {
        std::istringstream ids(line);
        traces.emplace_back();
        for (llama_token id; ids >> id;) {
            traces.back().push_back(id);
        }
    }
    const int passes = atoi(argv[4]), fresh = atoi(argv[5]);
    const double seconds = atof(argv[6]);

    const int64_t vocab_time = timed([&] {
        std::ifstream file(argv[1]);
        size_t size, id;
        file >> size >> tokens.eos;
        tokens.pieces.resize(size);
        for (std::string hex; file >> id >> hex;) {
            for (size_t at = 0; at < hex.size(); at += 2) {
                tokens.pieces[id] += (char) std::stoi(hex.substr(at, 2), nullptr, 16);
            }
        }
    });
    printf("{\"kind\": \"setup\", \"version\": \"%s\", \"vocab\": %lld}\n", LLAMACPP, (long long) vocab_time);

    const llama_vocab vocab;
    llama_grammar * grammar = nullptr;
    const auto compile = [&] {
        llama_grammar_free_impl(grammar);
        grammar = nullptr;
        return timed([&] { grammar = llama_grammar_init_impl(&vocab, source.c_str(), "root", false, nullptr, 0, nullptr, 0); });
    };
    const auto begun = steady::now();
    const auto spent = [&] { return std::chrono::duration<double>(steady::now() - begun).count(); };
    size_t done = 0;
    for (; done < traces.size() && (done == 0 || spent() <= seconds / 2); done++) {
        int64_t time = compile();
        if (grammar == nullptr) {
            return 1;
        }
        walk("look", done, traces[done], *grammar, time, true);
        for (int again = 0; again < fresh && (again == 0 || spent() <= seconds / 2); again++) {
            time = compile();
            walk("fresh", done, traces[done], *grammar, time, false);
        }
    }
    for (int pass = 0; pass < passes && (pass == 0 || spent() <= seconds); pass++) {
        for (size_t number = 0; number < done; number++) {
            walk("warm", number, traces[number], *grammar, 0, false);
        }
    }
    llama_grammar_free_impl(grammar);
    return 0;
}
