/**
 * xterm writes the colours of spans that are not of its palette as attributes, which the policy of the page does not let
 * in: an attribute can come with a text that was made into a page, too. What is set by script on the style itself cannot.
 */
const setAttribute = HTMLSpanElement.prototype.setAttribute;
HTMLSpanElement.prototype.setAttribute = function set(name: string, value: string): void {
  if (name === 'style') this.style.cssText = value;
  else setAttribute.call(this, name, value);
};
