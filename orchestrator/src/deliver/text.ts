/**
 * Escapes untrusted text from machines, such as hostnames, for chat messages. The text must not mention users, create
 * links, or imitate Muster's own text.
 */

/** Inserts a zero-width space after the scheme of URLs, so that clients do not turn them into links. */
const unlinked = (text: string): string => text.replaceAll('://', ':\u200b//');

/** Escapes Discord's Markdown. A field of the message disables mentions. */
export const forDiscord = (text: string): string => unlinked(text).replaceAll(/[\\*_~`|>#[\]()<@:-]/g, '\\$&');

/** Escapes Slack's special characters, with which every mention, link, and date begins. */
export const forSlack = (text: string): string =>
  unlinked(text).replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
