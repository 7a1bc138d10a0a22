// llama.cpp's converter of JSON Schemas: a schema on standard input, its grammar in GBNF on standard output, or
// status 1 and the reason. README.md says how it is built. Only the converter's own files are linked; what these
// use of llama.cpp's common.cpp, which needs all the rest, is here.

#include <cstdlib>
#include <iostream>
#include <iterator>

#include "common.h"
#include "json-schema-to-grammar.h"

std::string string_join(const std::vector<std::string> & parts, const std::string & between) {
    std::string whole;
    for (size_t i = 0; i < parts.size(); i++) {
        whole += (i == 0 ? "" : between) + parts[i];
    }
    return whole;
}

std::string string_repeat(const std::string & part, size_t times) {
    return string_join(std::vector<std::string>(times, part), "");
}

std::vector<std::string> string_split(const std::string & whole, const std::string & between) {
    std::vector<std::string> parts;
    size_t from = 0;
    for (size_t at; (at = whole.find(between, from)) != std::string::npos; from = at + between.size()) {
        parts.push_back(whole.substr(from, at - from));
    }
    parts.push_back(whole.substr(from));
    return parts;
}

extern "C" void ggml_abort(const char * file, int line, const char *, ...) {
    std::cerr << file << ':' << line << '\n';
    std::abort();
}

int main() {
    const std::string schema(std::istreambuf_iterator<char>(std::cin), {});
    try {
        std::cout << json_schema_to_grammar(common_json::parse(schema), true);
    } catch (const std::exception & error) {
        std::cerr << error.what() << '\n';
        return 1;
    }
}
