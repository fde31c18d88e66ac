/* SPDX-License-Identifier: MIT */
/* Comparing secrets: every byte that was given is looked at, whatever has differed before. */
#include "serve/token.h"

bool rn_token_matches(ration_text given, const char *want)
{
    const ration_text token = ration_text_of(want);
    unsigned char differ = given.size != token.size;

    for (size_t i = 0; i < given.size && token.size > 0; i++)
        differ |= (unsigned char)(given.data[i] ^ token.data[i % token.size]);
    return differ == 0;
}
