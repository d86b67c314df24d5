// Ask for a passkey, or make one, as the options in data-passkey say, and send the response with the form.
for (const form of document.querySelectorAll("[data-passkey]")) {
  const ask = async (event) => {
    event?.preventDefault();
    const options = JSON.parse(form.dataset.passkey);
    const problem = form.querySelector("[role=alert]");
    problem.textContent = "";
    try {
      const publicKey = options.user ? PublicKeyCredential.parseCreationOptionsFromJSON(options) : PublicKeyCredential.parseRequestOptionsFromJSON(options);
      const credential = await navigator.credentials[options.user ? "create" : "get"]({ publicKey });
      form.elements.credential.value = JSON.stringify(credential);
      form.submit();
    } catch (error) {
      const isKnown = error.name === "InvalidStateError";
      problem.textContent = isKnown ? "This device has a passkey of yours already." : "No passkey was used. Try again.";
    }
  };
  form.addEventListener("submit", ask);
  if (form.dataset.begin) ask();
}
