/**
 * xterm sets colors outside its palette with style attributes, which the Content-Security-Policy blocks because
 * injected HTML could contain them. This module sets `element.style` instead, which the policy allows.
 */
const setAttribute = HTMLSpanElement.prototype.setAttribute;
HTMLSpanElement.prototype.setAttribute = function set(name: string, value: string): void {
  if (name === 'style') this.style.cssText = value;
  else setAttribute.call(this, name, value);
};
