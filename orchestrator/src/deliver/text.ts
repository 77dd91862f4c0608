/**
 * Text for people that came from machines, names and hostnames above all, made harmless for where it is shown: it must not
 * call people, draw links or pass for text of ours.
 */

/** Keeps clients from making links of what looks like one: a zero-width space stands after the scheme. */
const unlinked = (text: string): string => text.replaceAll('://', ':\u200b//');

/** Markdown as Discord reads it. Mentions are turned off in the message as well. */
export const forDiscord = (text: string): string => unlinked(text).replaceAll(/[\\*_~`|>#[\]()<@:-]/g, '\\$&');

/** Slack gives three characters a meaning; every mention, link and date begins with one of them. */
export const forSlack = (text: string): string =>
  unlinked(text).replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
