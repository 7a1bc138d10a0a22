// What passes over n new tokens cost with llama.cpp's library, measured as `domino bench-model` measures ours.
//
//     llama_cpp MODEL.gguf REPEATS THREADS CONTEXT PROMPT
//
// Each pass goes on from CONTEXT tokens in the cache and gives the logits of all its tokens; passes of all n take
// turns, then comes a prompt of PROMPT tokens into an empty cache, of which the last row is wanted. The first round
// warms up. Prints one line of JSON: seconds, least and median, by n.

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "ggml-cpu.h"
#include "llama.h"

static const int COUNTS[] = {1, 2, 4, 8, 16};

struct Bench {
    llama_context * context;
    uint32_t vocabulary;

    // Seconds of a pass over `count` tokens from `first` on; logits of all, or of the last.
    double pass(int first, int count, bool all) {
        llama_memory_seq_rm(llama_get_memory(context), 0, first, -1);
        llama_batch batch = llama_batch_init(count, 0, 1);
        batch.n_tokens = count;
        for (int i = 0; i < count; i++) {
            batch.token[i] = (llama_token) ((uint32_t) (first + i) * 7919u % vocabulary);
            batch.pos[i] = first + i;
            batch.n_seq_id[i] = 1;
            batch.seq_id[i][0] = 0;
            batch.logits[i] = all || i == count - 1;
        }
        auto begun = std::chrono::steady_clock::now();
        bool failed = llama_decode(context, batch) != 0 || llama_get_logits_ith(context, count - 1) == nullptr;
        auto taken = std::chrono::steady_clock::now() - begun;
        llama_batch_free(batch);
        if (failed) {
            fprintf(stderr, "a pass failed\n");
            exit(1);
        }
        return std::chrono::duration<double>(taken).count();
    }
};

static void print(const char * name, std::vector<double> & times) {
    std::sort(times.begin(), times.end());
    printf("\"%s\": {\"least\": %.6f, \"median\": %.6f}", name, times.front(), times[times.size() / 2]);
}

int main(int argc, char ** argv) {
    if (argc != 6) {
        fprintf(stderr, "usage: llama_cpp MODEL.gguf REPEATS THREADS CONTEXT PROMPT\n");
        return 2;
    }
    const int repeats = atoi(argv[2]), threads = atoi(argv[3]), before = atoi(argv[4]), prompt = atoi(argv[5]);
    llama_log_set([](ggml_log_level level, const char * text, void *) {
        if (level == GGML_LOG_LEVEL_ERROR) {
            fputs(text, stderr);
        }
    }, nullptr);
    llama_backend_init();
    llama_model * model = llama_model_load_from_file(argv[1], llama_model_default_params());
    if (model == nullptr) {
        return 1;
    }
    llama_context_params params = llama_context_default_params();
    params.n_ctx = (uint32_t) std::max(before + 16, prompt);
    params.n_batch = params.n_ctx;
    params.n_threads = threads;
    params.n_threads_batch = threads;
    llama_context * context = llama_init_from_model(model, params);
    if (context == nullptr) {
        return 1;
    }
    // Kept as in llama.cpp's own programs: a library without OpenMP starts threads anew for each pass
    // otherwise.
    ggml_threadpool_params pool = ggml_threadpool_params_default(threads);
    ggml_threadpool * threadpool = ggml_threadpool_new(&pool);
    if (threadpool == nullptr) {
        return 1;
    }
    llama_attach_threadpool(context, threadpool, threadpool);
    Bench bench = {context, (uint32_t) llama_vocab_n_tokens(llama_model_get_vocab(model))};
    std::vector<double> prompts, passes[std::size(COUNTS)];
    for (int round = 0; round <= repeats; round++) {
        const double whole = prompt > 0 ? bench.pass(0, prompt, false) : 0;
        bench.pass(0, before, false);
        for (size_t i = 0; i < std::size(COUNTS); i++) {
            const double taken = bench.pass(before, COUNTS[i], true);
            if (round > 0) {
                passes[i].push_back(taken);
            }
        }
        if (round > 0) {
            prompts.push_back(whole);
        }
    }
    printf("{");
    for (size_t i = 0; i < std::size(COUNTS); i++) {
        char name[16];
        snprintf(name, sizeof name, "%d", COUNTS[i]);
        print(name, passes[i]);
        printf(", ");
    }
    print("prompt", prompts);
    printf("}\n");
    llama_free(context);
    ggml_threadpool_free(threadpool);
    llama_model_free(model);
    return 0;
}
