// What llama.cpp's library makes of a GGUF file, for the tables of this folder.
//
//     llama_cpp quantize IN.gguf OUT.gguf q8_0|q4_k_m
//     llama_cpp rows MODEL.gguf TOKENS ROWS
//     llama_cpp texts free|gbnf|llguidance
//
// `rows` reads token ids, a text a line, and writes the logits of every position of every text as 32-bit
// floats. `texts` is a program of `domino experiment` (docs/speculation-reference.md has the lines it reads and
// writes): without a grammar, by llama.cpp's own grammars, or by llguidance's. Loading and reading the grammar are not
// in the times. As in llama.cpp's programs a token is drawn freely first, and again from what the grammar
// allows if it does not allow that one. With -DWITHOUT_LLGUIDANCE the program has no llguidance, whose library it
// needs otherwise.

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iostream>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

#include "ggml-cpu.h"
#include "llama.h"
#include "nlohmann/json.hpp"
#ifndef WITHOUT_LLGUIDANCE
#include "llguidance.h"
#endif

using json = nlohmann::json;

[[noreturn]] static void fail(const std::string & message) {
    fprintf(stderr, "%s\n", message.c_str());
    exit(1);
}

static std::string read(const char * path) {
    std::ifstream file(path, std::ios::binary);
    if (!file) {
        fail(std::string(path) + " cannot be read");
    }
    return std::string(std::istreambuf_iterator<char>(file), {});
}

static llama_model * load(const char * path) {
    llama_model * model = llama_model_load_from_file(path, llama_model_default_params());
    if (model == nullptr) {
        fail(std::string(path) + " cannot be loaded");
    }
    return model;
}

// A context and its threads. As llama.cpp's own programs do, the threads are kept: a library without OpenMP
// starts them anew for each pass otherwise, and two that come to lie on one core wait for each other through
// whole time slices.
struct Session {
    llama_context * context;
    ggml_threadpool * threads;

    Session(llama_model * model, int length, int count) {
        llama_context_params params = llama_context_default_params();
        params.n_ctx = (uint32_t) length;
        params.n_batch = params.n_ctx;
        params.n_threads = count;
        params.n_threads_batch = count;
        context = llama_init_from_model(model, params);
        if (context == nullptr) {
            fail("no context");
        }
        ggml_threadpool_params pool = ggml_threadpool_params_default(count);
        threads = ggml_threadpool_new(&pool);
        if (threads == nullptr) {
            fail("no threads");
        }
        llama_attach_threadpool(context, threads, threads);
    }
};

static void pass(llama_context * context, const std::vector<llama_token> & tokens, int first, bool all) {
    llama_batch batch = llama_batch_init((int32_t) tokens.size(), 0, 1);
    batch.n_tokens = (int32_t) tokens.size();
    for (int i = 0; i < batch.n_tokens; i++) {
        batch.token[i] = tokens[i];
        batch.pos[i] = first + i;
        batch.n_seq_id[i] = 1;
        batch.seq_id[i][0] = 0;
        batch.logits[i] = all || i == batch.n_tokens - 1;
    }
    if (llama_decode(context, batch) != 0) {
        fail("a pass failed");
    }
    llama_batch_free(batch);
}

static int quantize(char ** args) {
    llama_model_quantize_params params = llama_model_quantize_default_params();
    const std::string form = args[2];
    if (form != "q8_0" && form != "q4_k_m") {
        fail("q8_0 or q4_k_m, not " + form);
    }
    params.ftype = form == "q8_0" ? LLAMA_FTYPE_MOSTLY_Q8_0 : LLAMA_FTYPE_MOSTLY_Q4_K_M;
    return llama_model_quantize(args[0], args[1], &params) == 0 ? 0 : 1;
}

static int rows(char ** args) {
    llama_model * model = load(args[0]);
    llama_context * context = Session(model, 2048, 2).context;
    const int width = llama_vocab_n_tokens(llama_model_get_vocab(model));
    std::ofstream out(args[2], std::ios::binary);
    std::istringstream lines(read(args[1]));
    for (std::string line; std::getline(lines, line);) {
        std::istringstream numbers(line);
        const std::vector<llama_token> tokens{std::istream_iterator<llama_token>(numbers), {}};
        llama_memory_clear(llama_get_memory(context), true);
        pass(context, tokens, 0, true);
        for (size_t i = 0; i < tokens.size(); i++) {
            out.write((const char *) llama_get_logits_ith(context, (int32_t) i), (std::streamsize) width * 4);
        }
    }
    out.close();
    return out ? 0 : 1;
}

// What a grammar allows, by llama.cpp or by llguidance.
struct Rules {
    llama_sampler * gbnf = nullptr;
#ifndef WITHOUT_LLGUIDANCE
    LlgMatcher * llguidance = nullptr;
#endif

    void begin() {
        if (gbnf != nullptr) {
            llama_sampler_reset(gbnf);
        }
#ifndef WITHOUT_LLGUIDANCE
        if (llguidance != nullptr && llg_matcher_reset(llguidance) != 0) {
            fail(llg_matcher_get_error(llguidance));
        }
#endif
    }

    void apply(llama_token_data_array & candidates) {
        if (gbnf != nullptr) {
            llama_sampler_apply(gbnf, &candidates);
        }
#ifndef WITHOUT_LLGUIDANCE
        if (llguidance != nullptr) {
            if (llg_matcher_get_mask(llguidance) == nullptr && llg_matcher_compute_mask(llguidance) != 0) {
                fail(llg_matcher_get_error(llguidance));
            }
            const uint32_t * mask = llg_matcher_get_mask(llguidance);
            for (size_t i = 0; i < candidates.size; i++) {
                const auto token = (uint32_t) candidates.data[i].id;
                if ((mask[token / 32] >> (token % 32) & 1) == 0) {
                    candidates.data[i].logit = -INFINITY;
                }
            }
        }
#endif
    }

    bool allows(llama_token token) {
        llama_token_data one = {token, 1.0f, 0.0f};
        llama_token_data_array candidates = {&one, 1, -1, false};
        apply(candidates);
        return one.logit != -INFINITY;
    }

    void accept(llama_token token) {
        if (gbnf != nullptr) {
            llama_sampler_accept(gbnf, token);
        }
#ifndef WITHOUT_LLGUIDANCE
        if (llguidance != nullptr && llg_matcher_consume_token(llguidance, token) != 0) {
            fail(llg_matcher_get_error(llguidance));
        }
#endif
    }
};

#ifndef WITHOUT_LLGUIDANCE
// llguidance's tokenizer of a vocabulary: the bytes of all tokens, special ones marked by 0xff.
static LlgTokenizer * tokenizer_of(const llama_vocab * vocab) {
    const int size = llama_vocab_n_tokens(vocab);
    std::vector<uint32_t> lengths;
    std::vector<uint8_t> bytes;
    for (llama_token token = 0; token < size; token++) {
        char piece[1024];
        int length = llama_token_to_piece(vocab, token, piece, sizeof piece, 0, false);
        if (length <= 0) {
            length = llama_token_to_piece(vocab, token, piece + 1, sizeof piece - 1, 0, true);
            piece[0] = '\xff';
            length = length < 0 ? 0 : length + 1;
        }
        bytes.insert(bytes.end(), piece, piece + length);
        lengths.push_back((uint32_t) length);
    }
    LlgTokenizerInit init = {};
    init.vocab_size = (uint32_t) size;
    init.tok_eos = (uint32_t) llama_vocab_eos(vocab);
    init.token_lens = lengths.data();
    init.token_bytes = bytes.data();
    // The tokenizer's own way puts a space before every text, which confuses llguidance.
    init.use_approximate_greedy_tokenize_fn = true;
    char error[1024];
    LlgTokenizer * tokenizer = llg_new_tokenizer(&init, error, sizeof error);
    if (tokenizer == nullptr) {
        fail(error);
    }
    return tokenizer;
}
#endif

// A grammar with dashes in the names of its rules and a line for each: llama.cpp reads no others.
static std::string for_llama_cpp(const std::string & text) {
    std::string out;
    for (size_t i = 0; i < text.size(); i++) {
        const char c = text[i];
        if (c == '"' || c == '[' || c == '#') {
            const char end = c == '[' ? ']' : c == '#' ? '\n' : c;
            const size_t begin = i++;
            while (i < text.size() && text[i] != end) {
                i += text[i] == '\\' && c != '#' ? 2 : 1;
            }
            // A comment's line ends as all others do; without it a rule's next line stays a part of it.
            if (c == '#') {
                i--;
            } else {
                out.append(text, begin, i + 1 - begin);
            }
        } else if (c == '\n' && i + 1 < text.size() && (text[i + 1] == ' ' || text[i + 1] == '\t')) {
            out += ' ';
        } else {
            out += c == '_' ? '-' : c;
        }
    }
    return out;
}

static Rules rules_of(const llama_vocab * vocab, const std::string & method, const json & grammar) {
    Rules rules;
    if (method == "free") {
        return rules;
    }
    auto text_in = [&](const char * notation) {
        const json & texts = grammar.at("texts");
        return texts.contains(notation) ? texts.at(notation).get<std::string>() : std::string();
    };
    if (method == "gbnf") {
        rules.gbnf = llama_sampler_init_grammar(vocab, for_llama_cpp(text_in("gbnf")).c_str(), "root");
        if (rules.gbnf == nullptr) {
            fail("the grammar is none of llama.cpp's");
        }
#ifndef WITHOUT_LLGUIDANCE
    } else if (method == "llguidance") {
        const std::string lark = text_in("lark"), schema = text_in("json_schema");
        LlgConstraintInit init;
        llg_constraint_init_set_defaults(&init, tokenizer_of(vocab));
        const char * kind = lark.empty() ? "json_schema" : "lark";
        rules.llguidance = llg_new_matcher(&init, kind, (lark.empty() ? schema : lark).c_str());
        if (const char * error = llg_matcher_get_error(rules.llguidance)) {
            fail(error);
        }
#endif
    } else {
        fail("free, gbnf or llguidance, not " + method);
    }
    return rules;
}

using Clock = std::chrono::steady_clock;

static double since(Clock::time_point begun) {
    return std::chrono::duration<double>(Clock::now() - begun).count();
}

// Writes a text, and says what it is and what it took.
static json text(llama_model * model, llama_context * context, Rules & rules, const json & asked) {
    const llama_vocab * vocab = llama_model_get_vocab(model);
    rules.begin();
    llama_memory_clear(llama_get_memory(context), true);
    const float temperature = asked.at("temperature").get<float>();
    llama_sampler * draw = llama_sampler_chain_init(llama_sampler_chain_default_params());
    if (temperature > 0.0f) {
        llama_sampler_chain_add(draw, llama_sampler_init_temp(temperature));
        llama_sampler_chain_add(draw, llama_sampler_init_dist((uint32_t) asked.at("seed").get<uint64_t>()));
    } else {
        llama_sampler_chain_add(draw, llama_sampler_init_greedy());
    }
    std::vector<llama_token> tokens = asked.at("prompt").get<std::vector<llama_token>>();
    const size_t most = asked.at("max_tokens").get<size_t>();
    const int width = llama_vocab_n_tokens(vocab);
    std::vector<llama_token_data> data((size_t) width);
    auto candidates_of = [&] {
        const float * logits = llama_get_logits_ith(context, -1);
        for (int i = 0; i < width; i++) {
            data[(size_t) i] = {i, logits[i], 0.0f};
        }
        return llama_token_data_array{data.data(), data.size(), -1, false};
    };

    std::vector<llama_token> written;
    int redrawn = 0, position = 0, passes = 0;
    bool ended = false;
    double in_model = 0.0, in_rules = 0.0, first = -1.0;
    const auto begun = Clock::now();
    while (written.size() < most && !ended) {
        auto at = Clock::now();
        pass(context, tokens, position, false);
        passes++;
        in_model += since(at);
        position += (int) tokens.size();
        auto candidates = candidates_of();
        llama_sampler_apply(draw, &candidates);
        llama_token token = candidates.data[candidates.selected].id;
        at = Clock::now();
        const bool allowed = rules.allows(token);
        in_rules += since(at);
        if (!allowed) {
            redrawn++;
            candidates = candidates_of();
            at = Clock::now();
            rules.apply(candidates);
            in_rules += since(at);
            llama_sampler_apply(draw, &candidates);
            token = candidates.data[candidates.selected].id;
        }
        if (first < 0.0) {
            first = since(begun);
        }
        ended = llama_vocab_is_eog(vocab, token);
        if (!ended) {
            at = Clock::now();
            rules.accept(token);
            in_rules += since(at);
            written.push_back(token);
            tokens = {token};
        }
    }
    const double seconds = since(begun);
    llama_sampler_free(draw);
    return {{"tokens", written}, {"finish", ended ? "stop" : "length"}, {"seconds", seconds},
            {"first_seconds", first}, {"passes", passes}, {"model_seconds", in_model},
            {"mask_seconds", in_rules}, {"interventions", redrawn}};
}

// Answers lines of JSON by lines of JSON, as programs of `domino experiment` do.
static int texts(const std::string & method) {
    std::string line;
    std::getline(std::cin, line);
    const json job = json::parse(line);
    llama_model * model = load(job.at("model").get<std::string>().c_str());
    const auto begun = Clock::now();
    Rules rules = rules_of(llama_model_get_vocab(model), method, job.at("grammar"));
    std::cout << json{{"compile_seconds", since(begun)}} << std::endl;
    Session session(model, 2048, job.at("threads").get<int>());
    while (std::getline(std::cin, line)) {
        const json written = text(model, session.context, rules, json::parse(line));
        // Else they would spin for part of a second, on the cores of whoever writes next. The next pass wakes
        // them.
        ggml_threadpool_pause(session.threads);
        std::cout << written << std::endl;
    }
    return 0;
}

int main(int argc, char ** argv) {
    llama_log_set([](ggml_log_level level, const char * line, void *) {
        if (level == GGML_LOG_LEVEL_ERROR) {
            fputs(line, stderr);
        }
    }, nullptr);
    llama_backend_init();
    const std::string verb = argc > 1 ? argv[1] : "";
    if (verb == "quantize" && argc == 5) {
        return quantize(argv + 2);
    }
    if (verb == "rows" && argc == 5) {
        return rows(argv + 2);
    }
    if (verb == "texts" && argc == 3) {
        return texts(argv[2]);
    }
    fprintf(stderr, "usage: llama_cpp quantize IN OUT FORMAT | rows MODEL TOKENS ROWS |"
                    " texts free|gbnf|llguidance\n");
    return 2;
}
