/* SPDX-License-Identifier: MIT */
#ifndef RN_NET_NOTIFY_H
#define RN_NET_NOTIFY_H

/*
 * What a service manager wants to hear: "READY=1", "RELOADING=1", "STOPPING=1", "STATUS=...", as sd_notify(3) has it.
 *
 * `address` is the value of NOTIFY_SOCKET: a path, or '@' and an abstract name. Lines of `state` are ended by '\n' but
 * the last. One datagram, never blocks.
 *
 * Errors  RATION_ERR_INVALID: an address of another form, or too long; RATION_ERR_IO: nobody has taken it.
 */
int rn_notify(const char *address, const char *state);

#endif
