/* SPDX-License-Identifier: MIT */
/*
 * Comparing secrets: every byte is looked at, whatever has differed before. Lengths are no secret; so a long list of
 * tokens costs little.
 */
#include "serve/token.h"

bool rn_token_matches(ration_text given, const char *want)
{
    const ration_text token = ration_text_of(want);
    unsigned char differ = 0;

    if (given.size != token.size)
        return false;
    for (size_t i = 0; i < token.size; i++)
        differ |= (unsigned char)(given.data[i] ^ token.data[i]);
    return differ == 0;
}
