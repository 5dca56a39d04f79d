// What the page says over its content: messages that pass, and the question before something is removed.

(() => {
  const find = (selector, within = document) => within.querySelector(selector);
  const element = (markup) => {
    const template = document.createElement("template");
    template.innerHTML = markup;
    return template.content.firstElementChild;
  };

  function toast(sentence, kind = "error") {
    let shelf = find("#toasts");
    if (!shelf) document.body.append((shelf = element('<div id="toasts" aria-live="assertive"></div>')));
    const card = element(
      '<div class="toast" role="alert"><p></p><button type="button" aria-label="Close this message">×</button></div>',
    );
    card.dataset.kind = kind;
    find("p", card).textContent = sentence;
    find("button", card).addEventListener("click", () => card.remove());
    shelf.replaceChildren(card);
    setTimeout(() => card.remove(), 12000);
  }

  function ask(question, act = "Remove") {
    const dialog = element(
      '<dialog class="ask"><form method="dialog"><p></p><div><button value="no" autofocus>Keep</button>' +
        '<button value="yes" class="danger"></button></div></form></dialog>',
    );
    find("p", dialog).textContent = question;
    find(".danger", dialog).textContent = act;
    document.body.append(dialog);
    dialog.showModal();
    return new Promise((resolve) =>
      dialog.addEventListener("close", () => {
        dialog.remove();
        resolve(dialog.returnValue === "yes");
      }),
    );
  }

  const dismiss = () => find("#toasts")?.replaceChildren();

  window.studioNotices ??= { element, toast, ask, dismiss };
})();
