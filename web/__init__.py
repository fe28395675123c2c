"""A web page for one topology on a live broker: server, security, and the front end beside it."""
