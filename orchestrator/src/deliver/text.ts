/**
 * Escapes untrusted text from machines, such as hostnames, for chat messages. Such text must not mention users, create
 * links, or imitate text from Muster.
 */

/** Inserts a zero-width space after the scheme of URLs to prevent clients from turning them into links. */
const unlinked = (text: string): string => text.replaceAll('://', ':\u200b//');

/** Escapes Discord's Markdown. Mentions are disabled by a message field. */
export const forDiscord = (text: string): string => unlinked(text).replaceAll(/[\\*_~`|>#[\]()<@:-]/g, '\\$&');

/** Escapes the special characters that begin Slack's mentions, links, and dates. */
export const forSlack = (text: string): string =>
  unlinked(text).replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
