/**
 * Escapes untrusted text of machines, such as names and hostnames, for chat messages. It must not mention users, create
 * links, or imitate Muster's text.
 */

/** Keeps clients from linking URLs: inserts a zero-width space after the scheme. */
const unlinked = (text: string): string => text.replaceAll('://', ':\u200b//');

/** Escapes Discord's Markdown. The message disables mentions as well. */
export const forDiscord = (text: string): string => unlinked(text).replaceAll(/[\\*_~`|>#[\]()<@:-]/g, '\\$&');

/** Escapes Slack's three special characters. Every mention, link, and date starts with one of them. */
export const forSlack = (text: string): string =>
  unlinked(text).replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
